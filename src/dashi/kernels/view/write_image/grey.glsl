uint shown(T raw) {
    T v = canon(raw);
    return is_nan_bits(v) ? NAN_PIXEL : OPAQUE | 0x010101u * level(v);
}
