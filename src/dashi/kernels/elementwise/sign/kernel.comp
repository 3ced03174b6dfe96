T apply(uint i) {
    T v = canon(x[i]);
    T unit = v > T(0) ? T(1) : (v < T(0) ? T(-1) : T(0));
    return is_nan_bits(v) ? v : unit;
}
