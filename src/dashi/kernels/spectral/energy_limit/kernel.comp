// A workgroup makes both sums of a state, then goes over its modes.
#include "energy_sums.glsl"

void main() {
    for (uint member = gl_WorkGroupID.x; member < members; member += stride) {
        base = member * plane;
        T rate = rate_of(group_sum64(0u, plane), group_sum64(1u, plane));
        for (uint i = gl_LocalInvocationIndex; i < plane; i += LANES) {
            P w = canonical(state[base + i]);
            P t = tendency_at(i);
            result[base + i] = P(canon(t.x - mul(rate, w.x)), canon(t.y - mul(rate, w.y)));
        }
    }
}
