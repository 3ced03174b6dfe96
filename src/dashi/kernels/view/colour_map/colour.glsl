uint shown(T raw) {
    T v = canon(raw);
    return is_nan_bits(v) ? NAN_PIXEL : table[level(v)];
}
