#include "counts.glsl"

uvec2 column(uint which) {
    uvec2 own = uvec2(0u);
    for (uint i = gl_LocalInvocationIndex; i < partials; i += MEMBERS) {
        own = add_wide(own, uvec2(sums[2u * i + which], 0u));
    }
    return add_together(own);
}

void main() {
    uvec2 differ = column(0u);
    uvec2 opposite = column(1u);
    if (gl_LocalInvocationIndex == 0u) {
        result[0] = differ;
        result[1] = opposite;
    }
}
