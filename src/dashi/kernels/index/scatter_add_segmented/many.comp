// One invocation per segment, for many segments of at most 64 runs: two levels of tree64.
#include "segment.glsl"

void main() {
    for (uint s = gl_GlobalInvocationID.x; s < count; s += stride) {
        uint start, size;
        T total = not_a_number();
        if (find_segment(s, start, size)) {
            uint end = start + size;
            total = T(0.0);
            for (uint first = start; first < end; first += 64u) {
                total += run_sum(first, min(first + 64u, end));
            }
        }
        result[s] = canon(canon(base[s]) + total);
    }
}
