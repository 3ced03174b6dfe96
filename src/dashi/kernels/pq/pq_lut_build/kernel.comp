// One entry of the table for each invocation.
#include "item_sum64.glsl"

T addend(uint entry, uint i) {
    T apart = canon(query[(entry / k) * d + i]) - canon(codebooks[entry * d + i]);
    return mul(apart, apart);
}

void main() {
    for (uint entry = gl_GlobalInvocationID.x; entry < items; entry += stride) {
        result[entry] = canon(sum64(entry, d));
    }
}
