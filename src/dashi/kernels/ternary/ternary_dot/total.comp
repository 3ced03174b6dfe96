#include "counts.glsl"

void main() {
    uvec2 own = uvec2(0u);
    for (uint i = gl_LocalInvocationIndex; i < partials; i += MEMBERS) {
        own = add_wide(own, uvec2(sums[i], uint(int(sums[i]) >> 31)));
    }
    uvec2 total = add_together(own);
    if (gl_LocalInvocationIndex == 0u) {
        result[0] = total;
    }
}
