// An invocation makes ROWS rows of one column, or of a quad of columns, one below the other: what it divides for it
// divides for once, and colours are looked up once for the rows of a step. Defined before: WIDE, 1 or 4, the columns at
// once; w counts such. dx and rest are bands / columns, and what that leaves over.
#if WIDE == 4
#define PIXELS uvec4
#define OVER(f, v, more) uvec4(f((v).x, more), f((v).y, more), f((v).z, more), f((v).w, more))
#else
#define PIXELS uint
#define OVER(f, v, more) f(v, more)
#endif

// The colour channels times weight / 256, rounded to the nearest, halves up; opaque.
uint faded(uint colour, uint weight) {
    uint red_blue = ((colour & 0x00ff00ffu) * weight + 0x00800080u) >> 8;
    uint green = ((colour & 0x0000ff00u) * weight + 0x00008000u) >> 8;
    return OPAQUE | (red_blue & 0x00ff00ffu) | (green & 0x0000ff00u);
}

uint colour_of(uint band, uint step) {
    T v = canon(sheet[step * bands + band]);
    return is_nan_bits(v) ? NAN_PIXEL : table[level(v)];
}

// The bands of neighbouring columns.
PIXELS bands_at(uint column) {
    uint columns = WIDE * w;
    uint band = column * bands / columns;
#if WIDE == 4
    uvec4 found = uvec4(band);
    uint left = column * bands - band * columns;
    [[unroll]] for (uint k = 1u; k < 4u; k++) {
        left += rest;
        band += dx + (left >= columns ? 1u : 0u);
        left -= left >= columns ? columns : 0u;
        found[k] = band;
    }
    return found;
#else
    return band;
#endif
}

PIXELS pixels(PIXELS bands_here, uint age) {
    PIXELS made = PIXELS(OPAQUE);
    if (age < ages && age <= t && t - age < steps) {
        PIXELS colours = OVER(colour_of, bands_here, t - age);
        made = OVER(faded, colours, min(weights[age], 256u));
    }
    return made;
}

void main() {
    for (uint block = gl_WorkGroupID.x; block < blocks; block += stride) {
        uint x = block % across * 32u + gl_LocalInvocationID.x;
        uint y = (block / across * 8u + gl_LocalInvocationID.y) * ROWS;
        if (x >= w || y >= h) {
            continue;
        }
        PIXELS bands_here = bands_at(WIDE * x);
        uint age = y / rows;
        uint left = rows - (y - age * rows);  // rows of this step
        PIXELS made = pixels(bands_here, age);
        uint end = min(y + ROWS, h);
        for (; y < end; y++) {
            if (left == 0u) {
                age++;
                left = rows;
                made = pixels(bands_here, age);
            }
            result[y * w + x] = made;
            left--;
        }
    }
}
