// A workgroup makes the sums of a state, then goes over its modes.
#define EXTRA_SUM
#include "energy_sums.glsl"

T extra(uint i) {
    return dot_of(canonical(gradient[base + i]), canonical(state[base + i]));
}

T pulled(T w, T t, T g, T h, T less, T damp, T rate, T c) {
    T allowed = mul(canon(allowance), w);
    T psi = mul(less, w);
    T taken = mul(rate, psi);
    T own = canon(mul(less, t) - canon(allowed + allowed));
    own = canon(own - canon(taken + taken));
    return canon(-canon(canon(mul(rate, g) + mul(damp, h)) + mul(c, own)));
}

void main() {
    for (uint member = gl_WorkGroupID.x; member < members; member += stride) {
        base = member * plane;
        T excess = canon(group_sum64(0u, plane));
        T energy = canon(group_sum64(1u, plane));
        T aligned = canon(group_sum64(2u, plane));
        T rate = rate_of(excess, energy);
        T c = feeds(excess, energy) ? p_divide(aligned, energy) : T(0);
        for (uint i = gl_LocalInvocationIndex; i < plane; i += LANES) {
            P w = canonical(state[base + i]);
            P t = tendency_at(i);
            P g = canonical(gradient[base + i]);
            T less = canon(inverse[i]);
            T damp = canon(drain[i]);
            P h = P(canon(g.x - mul(c, mul(less, w.x))), canon(g.y - mul(c, mul(less, w.y))));
            raw_gradient[base + i] = h;
            state_gradient[base + i] = P(pulled(w.x, t.x, g.x, h.x, less, damp, rate, c),
                                         pulled(w.y, t.y, g.y, h.y, less, damp, rate, c));
        }
    }
}
