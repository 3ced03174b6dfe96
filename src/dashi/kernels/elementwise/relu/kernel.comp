T apply(T x) {
    T positive = x < T(0) ? T(0) : x;
    return is_nan_bits(x) ? x : positive;
}
