// What bounds the energy of a closure (dashi.kernels.spectral._energy). Addends 0 are of the excess, 1 of the energy;
// a kernel with EXTRA_SUM defines `extra`, the addends 2.
#include "not_a_number.glsl"

uint base;

P canonical(P z) {
    return P(canon(z.x), canon(z.y));
}

T dot_of(P a, P b) {
    return mul(a.x, b.x) + mul(a.y, b.y);
}

P tendency_at(uint i) {
    P w = canonical(state[base + i]);
    P r = canonical(raw[base + i]);
    T d = canon(drain[i]);
    return P(canon(r.x - mul(w.x, d)), canon(r.y - mul(w.y, d)));
}

#ifdef EXTRA_SUM
T extra(uint i);
#endif

T addend(uint item, uint i) {
    T many = canon(count[i]);
    P w = canonical(state[base + i]);
#ifdef EXTRA_SUM
    if (item == 2u) {
        return mul(many, extra(i));
    }
#endif
    T less = canon(inverse[i]);
    T size = dot_of(w, w);
    if (item == 1u) {
        return mul(many, mul(less, size));
    }
    return mul(many, mul(less, dot_of(tendency_at(i), w)) - mul(canon(allowance), size));
}

#include "group_sum64.glsl"

bool feeds(T excess, T energy) {
    return !is_nan_bits(excess) && !is_nan_bits(energy) && excess > T(0) && energy > T(0);
}

// Sums are canonical here as in the reference.
T rate_of(T excess, T energy) {
    T above = canon(excess);
    T whole = canon(energy);
    return feeds(above, whole) ? p_divide(above, whole) : T(0);
}
