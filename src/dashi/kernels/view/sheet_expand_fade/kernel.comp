// The colour channels times weight / 256, rounded to the nearest, halves up; opaque.
uint faded(uint colour, uint weight) {
    uint red_blue = ((colour & 0x00ff00ffu) * weight + 0x00800080u) >> 8;
    uint green = ((colour & 0x0000ff00u) * weight + 0x00008000u) >> 8;
    return OPAQUE | (red_blue & 0x00ff00ffu) | (green & 0x0000ff00u);
}

void pixel(uint x, uint y) {
    uint age = y / rows;
    uint made = OPAQUE;
    if (age < ages && age <= t && t - age < steps) {
        T v = canon(sheet[(t - age) * bands + x * bands / w]);
        uint colour = is_nan_bits(v) ? NAN_PIXEL : table[level(v)];
        made = faded(colour, min(weights[age], 256u));
    }
    result[y * w + x] = made;
}
