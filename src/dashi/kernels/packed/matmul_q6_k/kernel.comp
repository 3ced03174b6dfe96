// A block of 256 codes of 6 bits and 16 scales, signed bytes.
const uint WORDS = 53u;
const uint RUNS = 4u;
#include "packed_words.glsl"

float steps[4];

void begin_run() {
    float step = f16_value(word(0u) & 0xffffu);
    uint scales = word(1u + quarter);
    [[unroll]] for (uint s = 0u; s < 4u; s++) {
        steps[s] = mul(step, float(int(scales << (24u - 8u * s)) >> 24));
    }
}

vec4 values(float step, uint low, uint high) {
    uvec4 upper = uvec4(high, high >> 2, high >> 4, high >> 6) & 3u;
    return scaled(step, vec4(nibbles(low) | upper << 4) - 32.0);
}

void octet(uint i, out vec4 low, out vec4 high) {
    uint codes = word(21u + 8u * quarter + i);
    uint upper = word(5u + 4u * quarter + i / 2u) >> (i % 2u * 16u);
    low = values(steps[i / 2u], codes, upper);
    high = values(steps[i / 2u], codes >> 16, upper >> 8);
}
#include "packed_rows.glsl"
