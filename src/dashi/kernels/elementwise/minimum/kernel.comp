T apply(uint i) {
    T a = canon(x[i]);
    T b = canon(y[i]);
    T smaller = a > b ? b : a;
    return is_nan_bits(a) ? a : (is_nan_bits(b) ? b : smaller);
}
