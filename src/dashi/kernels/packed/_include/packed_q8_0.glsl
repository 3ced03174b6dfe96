// Two blocks of 32 signed bytes to a tile.
#define RUNS 1u
#define WORDS 17u
#define HEAD_WORDS 1
#include "packed_words.glsl"

struct Words {
    uvec4 codes[4];
    uint scales;
};
Words words;
uvec4 now[2];
vec4 steps;

Words fetch(uint run, uint row) {
    Words w;
    w.scales = head_of(run, row, 0u);
    [[unroll]] for (uint v = 0u; v < 4u; v++) {
        w.codes[v] = vector_of(run, row, v);
    }
    return w;
}

void begin_half(uint h) {
    now[0] = (h == 0u ? words.codes[0] : words.codes[2]) ^ 0x80808080u;
    now[1] = (h == 0u ? words.codes[1] : words.codes[3]) ^ 0x80808080u;
    steps = vec4(f16_value(words.scales >> (16u * h) & 0xffffu)) * NIBBLES.xzxz;
}

vec4 values(uint w) {
    uvec4 four = uvec4(w, w, w >> 16, w >> 16) & uvec4(0xffu, 0xff00u, 0xffu, 0xff00u);
    return steps * magic(four, vec4(128.0, 32768.0, 128.0, 32768.0));
}

void octet(uint i, out vec4 low, out vec4 high) {
    uvec4 four = i < 2u ? now[0] : now[1];
    low = values(i % 2u == 0u ? four.x : four.z);
    high = values(i % 2u == 0u ? four.y : four.w);
}

uint least_weight() {
    return NO_KEY;
}
