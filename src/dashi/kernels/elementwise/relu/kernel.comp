T apply(uint i) {
    T v = canon(x[i]);
    T positive = v < T(0) ? T(0) : v;
    return is_nan_bits(v) ? v : positive;
}
