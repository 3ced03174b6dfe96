// With e = e^-|x|, at most 1: nothing overflows, and small results keep all their digits.
T apply(uint i) {
    T v = canon(x[i]);
    T e = p_exp(-abs(v));
    return p_divide(v < T(0) ? e : T(1), T(1) + e);
}
