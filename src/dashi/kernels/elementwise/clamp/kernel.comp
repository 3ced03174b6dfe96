T apply(uint i) {
    T v = canon(x[i]);
    T low = canon(lo);
    T high = canon(hi);
    T inside = v < low ? low : (v > high ? high : v);
    return is_nan_bits(v) ? v : inside;
}
