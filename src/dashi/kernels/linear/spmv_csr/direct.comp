// Each invocation reads the entries of its own rows.
#include "entries.glsl"

void main() {
    for (uint r = first_block * LOCAL + gl_GlobalInvocationID.x; r < min(blocks * LOCAL, rows); r += stride * LOCAL) {
        uint start, beyond;
        bool good = find_row(r, start, beyond);
        result[r] = good ? direct_sum(start, beyond) : not_a_number();
    }
}
