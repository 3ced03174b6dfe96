#include "trits.glsl"

const uint LANES = 256u;

shared uvec2 counted[LANES];

// A workgroup counts one part of one member. Whole numbers add up alike in any order.
void main() {
    uint lane = gl_LocalInvocationIndex;
    for (uint item = gl_WorkGroupID.x; item < total; item += stride) {
        uint member = item / parts;
        uvec2 own = uvec2(0u);
        for (uint i = item % parts * LANES + lane; 4u * i < plane; i += parts * LANES) {
            uint word = s[member * (plane / 4u) + i] & below(4u * i, plane);
            own += uvec2(bitCount(trits_support(word)), bitCount(trits_minus(word)));
        }
        counted[lane] = own;
        for (uint others = LANES / 2u; others > 0u; others /= 2u) {
            barrier();
            if (lane < others) {
                counted[lane] += counted[lane + others];
            }
        }
        if (lane == 0u) {
            atomicAdd(result[2u * member], counted[0].x - counted[0].y);
            atomicAdd(result[2u * member + 1u], counted[0].y);
        }
        barrier();
    }
}
