T apply(T x) {
    T low = canon(lo);
    T high = canon(hi);
    T inside = x < low ? low : (x > high ? high : x);
    return is_nan_bits(x) ? x : inside;
}
