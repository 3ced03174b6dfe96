T apply(T x) {
    T unit = x > T(0) ? T(1) : (x < T(0) ? T(-1) : T(0));
    return is_nan_bits(x) ? x : unit;
}
