// 64 numbers of 16 bits to a tile. Define before: VALUE(h), the fp32 number of 16 bits.
const uint WORDS = 32u;
const uint RUNS = 1u;
#include "packed_words.glsl"

void begin_run() {
}

vec4 values(uint first, uint second) {
    return vec4(VALUE(first & 0xffffu), VALUE(first >> 16), VALUE(second & 0xffffu), VALUE(second >> 16));
}

void octet(uint i, out vec4 low, out vec4 high) {
    low = values(word(4u * i), word(4u * i + 1u));
    high = values(word(4u * i + 2u), word(4u * i + 3u));
}
#include "packed_rows.glsl"
