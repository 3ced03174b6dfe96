#include "torus.glsl"

const uint LANES = 256u;

shared uvec3 counted[LANES];

// Whole numbers add up alike in any order.
void main() {
    uint lane = gl_LocalInvocationIndex;
    uvec3 own = uvec3(0u);
    for (uint site = gl_GlobalInvocationID.x; site < total; site += stride) {
        uint y = site / w;
        uint x = site % w;
        int here = trit_at(y, x);
        if (here != 0) {
            int right = w > 1u ? trit_at(y, stepped_on(x, w)) : 0;
            int below = h > 1u ? trit_at(stepped_on(y, h), x) : 0;
            own += uvec3(here > 0 ? 1u : 0u, here < 0 ? 1u : 0u, (here * right < 0 ? 1u : 0u) + (here * below < 0 ? 1u : 0u));
        }
    }
    counted[lane] = own;
    for (uint others = LANES / 2u; others > 0u; others /= 2u) {
        barrier();
        if (lane < others) {
            counted[lane] += counted[lane + others];
        }
    }
    if (lane == 0u) {
        atomicAdd(result[0], counted[0].x);
        atomicAdd(result[1], counted[0].y);
        atomicAdd(result[2], counted[0].z);
    }
}
