// 64 numbers of 16 bits to a tile. Define before: VALUE(h), the fp32 number of 16 bits; SMALL 1 if numbers other than 0
// may be below 2^-24.
#define RUNS 1u
#define WORDS 32u
#define HEAD_WORDS 0
#include "packed_words.glsl"

struct Words {
    uvec4 codes[8];
};
Words words;
uvec4 now[4];

Words fetch(uint run, uint row) {
    Words w;
    [[unroll]] for (uint v = 0u; v < 8u; v++) {
        w.codes[v] = vector_of(run, row, v);
    }
    return w;
}

void begin_half(uint h) {
    [[unroll]] for (uint v = 0u; v < 4u; v++) {
        now[v] = h == 0u ? words.codes[v] : words.codes[v + 4u];
    }
}

vec4 values(uint first, uint second) {
    return vec4(VALUE(first & 0xffffu), VALUE(first >> 16), VALUE(second & 0xffffu), VALUE(second >> 16));
}

void octet(uint i, out vec4 low, out vec4 high) {
    uvec4 four = i < 2u ? (i == 0u ? now[0] : now[1]) : (i == 2u ? now[2] : now[3]);
    low = values(four.x, four.y);
    high = values(four.z, four.w);
}

uint least_weight() {
#if SMALL
    uint least = NO_KEY;
    [[unroll]] for (uint v = 0u; v < 8u; v++) {
        [[unroll]] for (uint j = 0u; j < 4u; j++) {
            uint w = words.codes[v][j];
            least = min(least, min(magnitude_key(w << 16), magnitude_key(w & 0x7fff0000u)));
        }
    }
    return least;
#else
    return NO_KEY;
#endif
}
