#include "counts.glsl"

// Sites supported in both fields count 1, less 2 where their signs differ.
void main() {
    const uint HELD = 0x55555555u;
    uint own = 0u;
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uint both = a[i] & b[i] & HELD;
        uint apart = ((a[i] ^ b[i]) >> 1) & both;
        own += uint(bitCount(both)) - 2u * uint(bitCount(apart));
    }
    uint total = count_together(own);
    if (gl_LocalInvocationIndex == 0u) {
        sums[gl_WorkGroupID.x] = total;
    }
}
