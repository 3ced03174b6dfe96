// A block of 256 codes of 4 or 5 bits, 8 scales and 8 minima of 6 bits. Define before: FIFTH 1 if codes have 5 bits.
const uint WORDS = 36u + 8u * FIFTH;
const uint RUNS = 4u;
#include "packed_words.glsl"

float steps[2];
float minima[2];

// Byte i of a word.
uint byte_of(uint w, uint i) {
    return w >> (8u * i) & 255u;
}

void begin_run() {
    uint heads = word(0u);
    float step = f16_value(heads & 0xffffu);
    float minimum = f16_value(heads >> 16);
    uint scales = word(1u);
    uint offsets = word(2u);
    uint mixed = word(3u);
    [[unroll]] for (uint h = 0u; h < 2u; h++) {
        uint i = (2u * quarter + h) % 4u;
        uint s = byte_of(scales, i);
        uint o = byte_of(offsets, i);
        uint both = byte_of(mixed, i);
        bool later = quarter >= 2u;
        s = later ? (both & 15u) | (s >> 2 & 48u) : s & 63u;
        o = later ? both >> 4 | (o >> 2 & 48u) : o & 63u;
        steps[h] = mul(step, float(s));
        minima[h] = mul(minimum, float(o));
    }
}

void octet(uint i, out vec4 low, out vec4 high) {
    uint codes = word(4u + 8u * FIFTH + 8u * quarter + i);
    uvec4 lower = nibbles(codes);
    uvec4 upper = nibbles(codes >> 16);
#if FIFTH
    uint fifth = word(4u + 2u * quarter + i / 4u) >> (i % 4u * 8u);
    lower |= bits(fifth) << 4;
    upper |= bits(fifth >> 4) << 4;
#endif
    low = scaled(steps[i / 4u], vec4(lower)) - minima[i / 4u];
    high = scaled(steps[i / 4u], vec4(upper)) - minima[i / 4u];
}
#include "packed_rows.glsl"
