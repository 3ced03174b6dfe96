#include "counts.glsl"

uvec2 column(uint which) {
    uvec2 own = uvec2(0u);
    for (uint i = gl_LocalInvocationIndex; i < partials; i += MEMBERS) {
        own = add_wide(own, uvec2(sums[2u * i + which], 0u));
    }
    return add_together(own);
}

void main() {
    uvec2 plus = column(0u);
    uvec2 minus = column(1u);
    if (gl_LocalInvocationIndex == 0u) {
        result[0] = plus;
        result[1] = minus;
        result[2] = add_wide(uvec2(n, 0u), negative_wide(add_wide(plus, minus)));
    }
}
