#include "counts.glsl"

// Fields differ where one alone has support, and where both have it with different signs.
void main() {
    const uint HELD = 0x55555555u;
    uint differ = 0u;
    uint opposite = 0u;
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uint left = a[i];
        uint right = b[i];
        uint apart = ((left ^ right) >> 1) & left & right & HELD;
        opposite += uint(bitCount(apart));
        differ += uint(bitCount(((left ^ right) & HELD) | apart));
    }
    differ = count_together(differ);
    opposite = count_together(opposite);
    if (gl_LocalInvocationIndex == 0u) {
        sums[2u * gl_WorkGroupID.x] = differ;
        sums[2u * gl_WorkGroupID.x + 1u] = opposite;
    }
}
