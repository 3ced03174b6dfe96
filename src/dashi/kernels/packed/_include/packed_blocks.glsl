// Two blocks of 32 codes of 4 or 5 bits to a tile. Define before: FIFTH 1 if codes have 5 bits; MINIMUM 1 if blocks have
// a minimum, 0 if codes are counted from the middle.
#define RUNS 1u
#if FIFTH && MINIMUM
#define WORDS 12u
#define HEAD_WORDS 0
#elif FIFTH
#define WORDS 11u
#define HEAD_WORDS 3
#elif MINIMUM
#define WORDS 10u
#define HEAD_WORDS 2
#else
#define WORDS 9u
#define HEAD_WORDS 1
#endif
#include "packed_words.glsl"

#if MINIMUM
const vec4 MIDDLES = vec4(0.0);
#elif FIFTH
const vec4 MIDDLES = vec4(16.0, 256.0, 4096.0, 65536.0);
#else
const vec4 MIDDLES = vec4(8.0, 128.0, 2048.0, 32768.0);
#endif

struct Words {
    uvec4 first, second;
    uvec2 scales;
    uvec2 fifths;
};
#include "packed_nibbles.glsl"

Words fetch(uint run, uint row) {
    Words w;
#if FIFTH && MINIMUM
    uvec4 four = vector_of(run, row, 0u);
    w.scales = four.xy;
    w.fifths = four.zw;
#elif FIFTH
    w.scales = uvec2(head_of(run, row, 0u), 0u);
    w.fifths = uvec2(head_of(run, row, 1u), head_of(run, row, 2u));
#elif MINIMUM
    w.scales = uvec2(head_of(run, row, 0u), head_of(run, row, 1u));
    w.fifths = uvec2(0u);
#else
    w.scales = uvec2(head_of(run, row, 0u), 0u);
    w.fifths = uvec2(0u);
#endif
    w.first = vector_of(run, row, VECTORS - 2u);
    w.second = vector_of(run, row, VECTORS - 1u);
    return w;
}

void begin_half(uint h) {
    choose_half(h);
#if MINIMUM
    uint both = h == 0u ? words.scales.x : words.scales.y;
    steps = vec4(f16_value(both & 0xffffu)) * NIBBLES;
    minimum = f16_value(both >> 16);
#else
    steps = vec4(f16_value(words.scales.x >> (16u * h) & 0xffffu)) * NIBBLES;
#endif
}

vec4 values(uvec4 four) {
#if MINIMUM
    return steps * magic(four, MIDDLES) + minimum;
#else
    return steps * magic(four, MIDDLES);
#endif
}
