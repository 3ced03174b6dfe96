// A block of 256 codes of 4 or 5 bits, 8 scales and 8 minima of 6 bits. Define before: FIFTH 1 if codes have 5 bits.
#define RUNS 4u
#define HEAD_WORDS 0
#if FIFTH
#define WORDS 44u
#else
#define WORDS 36u
#endif
#include "packed_words.glsl"

struct Words {
    uvec4 first, second, parts;
    uvec2 fifths;
    uint quarter;
};
#include "packed_nibbles.glsl"

Words fetch(uint run, uint row) {
    Words w;
    w.quarter = run % RUNS;
    w.parts = vector_of(run, row, 0u);
#if FIFTH
    uvec4 four = vector_of(run, row, 1u + w.quarter / 2u);
    w.fifths = w.quarter % 2u == 0u ? four.xy : four.zw;
#else
    w.fifths = uvec2(0u);
#endif
    w.first = vector_of(run, row, VECTORS - 8u + 2u * w.quarter);
    w.second = vector_of(run, row, VECTORS - 7u + 2u * w.quarter);
    return w;
}

// A word of `parts` has two scales and two minima of its quarter, and a byte of the two numbers that they are times.
void begin_half(uint h) {
    choose_half(h);
    uvec4 parts = words.parts;
    uint q = words.quarter;
    uint own = (q < 2u ? (q == 0u ? parts.x : parts.y) : (q == 2u ? parts.z : parts.w)) >> (6u * h);
    float step = f16_value(parts.x >> 24 | parts.y >> 24 << 8) * float(own & 63u);
    minimum = f16_value(parts.z >> 24 | parts.w >> 24 << 8) * float(own >> 12 & 63u);
    steps = vec4(step) * NIBBLES;
}

vec4 values(uvec4 four) {
    return steps * magic(four, vec4(0.0)) - minimum;
}
