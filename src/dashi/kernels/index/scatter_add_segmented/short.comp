// One invocation per segment, for segments of one run.
#include "segment.glsl"

void main() {
    for (uint s = gl_GlobalInvocationID.x; s < count; s += stride) {
        uint start, size;
        T total = not_a_number();
        if (find_segment(s, start, size)) {
            total = run_sum(start, start + size);
        }
        result[s] = canon(canon(base[s]) + total);
    }
}
