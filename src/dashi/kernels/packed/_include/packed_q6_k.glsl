// A block of 256 codes of 6 bits and 16 scales, signed bytes.
#define RUNS 4u
#define WORDS 53u
#define HEAD_WORDS 1
#include "packed_words.glsl"

struct Words {
    uvec4 first, second, uppers;
    uint scales;
    uint heading;
};
Words words;
uvec4 now;
uvec2 upper_now;
vec4 steps[2];

Words fetch(uint run, uint row) {
    Words w;
    uint quarter = run % RUNS;
    w.heading = head_of(run, row, 0u);
    uvec4 four = vector_of(run, row, 0u);
    w.scales = quarter < 2u ? (quarter == 0u ? four.x : four.y) : (quarter == 2u ? four.z : four.w);
    w.uppers = vector_of(run, row, 1u + quarter);
    w.first = vector_of(run, row, 5u + 2u * quarter);
    w.second = vector_of(run, row, 6u + 2u * quarter);
    return w;
}

void begin_half(uint h) {
    now = h == 0u ? words.first : words.second;
    upper_now = h == 0u ? words.uppers.xy : words.uppers.zw;
    float step = f16_value(words.heading & 0xffffu);
    uint own = words.scales >> (16u * h);
    steps[0] = vec4(step * float(int(own << 24) >> 24)) * NIBBLES;
    steps[1] = vec4(step * float(int(own << 16) >> 24)) * NIBBLES;
}

void octet(uint i, out vec4 low, out vec4 high) {
    const uvec4 UPPERS = uvec4(0x30u, 0x300u, 0x3000u, 0x30000u);
    const vec4 MIDDLES = vec4(32.0, 512.0, 8192.0, 131072.0);
    uint codes = i < 2u ? (i == 0u ? now.x : now.y) : (i == 2u ? now.z : now.w);
    uint upper = (i < 2u ? upper_now.x : upper_now.y) >> (2u * (i % 2u));
    vec4 step = i < 2u ? steps[0] : steps[1];
    low = step * magic(nibbles(codes) | (uvec4(upper << 4) & UPPERS), MIDDLES);
    high = step * magic(nibbles(codes >> 16) | (uvec4(upper >> 12) & UPPERS), MIDDLES);
}

uint least_weight() {
    return NO_KEY;
}
