float value_of(uint h) {
    return bf16_value(h);
}
