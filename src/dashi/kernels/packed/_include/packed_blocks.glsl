// Two blocks of 32 codes of 4 or 5 bits to a tile. Define before: FIFTH 1 if codes have 5 bits; MINIMUM 1 if blocks have
// a minimum, 0 if codes are counted from the middle.
const uint HEADS = MINIMUM + 1u;
const uint WORDS = HEADS + 2u * FIFTH + 8u;
const uint RUNS = 1u;
#include "packed_words.glsl"

float steps[2];
float minima[2];

void begin_run() {
#if MINIMUM
    uint first = word(0u);
    uint second = word(1u);
    steps[0] = f16_value(first & 0xffffu);
    steps[1] = f16_value(second & 0xffffu);
    minima[0] = f16_value(first >> 16);
    minima[1] = f16_value(second >> 16);
#else
    uint both = word(0u);
    steps[0] = f16_value(both & 0xffffu);
    steps[1] = f16_value(both >> 16);
#endif
}

vec4 values(uint block, uvec4 codes) {
#if MINIMUM
    return scaled(steps[block], vec4(codes)) + minima[block];
#else
    return scaled(steps[block], vec4(codes) - (FIFTH != 0 ? 16.0 : 8.0));
#endif
}

void octet(uint i, out vec4 low, out vec4 high) {
    uint codes = word(HEADS + 2u * FIFTH + i);
    uvec4 lower = nibbles(codes);
    uvec4 upper = nibbles(codes >> 16);
#if FIFTH
    uint fifth = word(HEADS + i / 4u) >> (i % 4u * 8u);
    lower |= bits(fifth) << 4;
    upper |= bits(fifth >> 4) << 4;
#endif
    low = values(i / 4u, lower);
    high = values(i / 4u, upper);
}
#include "packed_rows.glsl"
