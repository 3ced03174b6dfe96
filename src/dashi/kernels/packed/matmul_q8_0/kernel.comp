// Two blocks of 32 signed bytes to a tile.
const uint WORDS = 17u;
const uint RUNS = 1u;
#include "packed_words.glsl"

float steps[2];

void begin_run() {
    uint both = word(0u);
    steps[0] = f16_value(both & 0xffffu);
    steps[1] = f16_value(both >> 16);
}

vec4 bytes(uint w) {
    return vec4(ivec4(uvec4(w << 24, w << 16, w << 8, w)) >> 24);
}

void octet(uint i, out vec4 low, out vec4 high) {
    low = scaled(steps[i / 4u], bytes(word(1u + 2u * i)));
    high = scaled(steps[i / 4u], bytes(word(2u + 2u * i)));
}
#include "packed_rows.glsl"
