uint bits_of(float v) {
    return f16_bits(v);
}
