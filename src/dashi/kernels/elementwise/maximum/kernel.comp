T apply(T x, T y) {
    T larger = x < y ? y : x;
    return is_nan_bits(x) ? x : (is_nan_bits(y) ? y : larger);
}
