T apply(T x, T y) {
    T smaller = x > y ? y : x;
    return is_nan_bits(x) ? x : (is_nan_bits(y) ? y : smaller);
}
