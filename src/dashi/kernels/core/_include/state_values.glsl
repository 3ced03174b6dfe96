// What one value before and after adds to the measures.
#include "state_measures.glsl"

bool is_odd(T v) {
#if T_IS_F64
    return (unpackDouble2x32(v).y & F64_INF_HIGH) == F64_INF_HIGH;
#else
    return (floatBitsToUint(v) & F32_INF) == F32_INF;
#endif
}

KEY size_key(T v) {
    return key_of(canon(abs(v)));
}

void take_extremes(inout ACC mine, T here, T there, uint place) {
    mine.tops[0] = above(mine.tops[0], size_key(there));
    mine.tops[1] = above(mine.tops[1], size_key(canon(there - here)));
    mine.tops[2] = above(mine.tops[2], key_of(canon(-there)));
    mine.tops[3] = above(mine.tops[3], key_of(there));
    bool bad = is_odd(there);
    mine.odd += bad ? 1u : 0u;
    mine.first = bad ? min(mine.first, place) : mine.first;
}

// Addend q of the sums.
T addend(uint q, T here, T there) {
    T change = canon(there - here);
    T factor = q == 0u ? here : q == 2u ? change : there;
    return q == 3u ? there : mul(factor, factor);
}
