uint bits_of(float v) {
    return bf16_bits(v);
}
