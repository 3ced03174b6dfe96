float value_of(uint h) {
    return f16_value(h);
}
