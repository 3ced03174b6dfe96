// With e = e^-|x|, at most 1: nothing overflows, and small results keep all their digits.
T apply(T x) {
    T e = p_exp(-abs(x));
    return p_divide(x < T(0) ? e : T(1), T(1) + e);
}
