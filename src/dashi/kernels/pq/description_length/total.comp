#include "counts.glsl"

void main() {
    uvec2 own = uvec2(0u);
    for (uint i = gl_LocalInvocationIndex; i < partials; i += MEMBERS) {
        own = add_wide(own, uvec2(sums[i], 0u));
    }
    uint supported = add_together(own).x;  // there are fewer than 2^32 sites
    uvec2 bits = add_wide(uvec2(n, 0u), uvec2(supported, 0u));
    bits = add_wide(bits, times_wide(supported, bits_per_code));
    bits = add_wide(bits, times_wide(residual_bytes, 8u));
    if (gl_LocalInvocationIndex == 0u) {
        result[0] = bits;
    }
}
