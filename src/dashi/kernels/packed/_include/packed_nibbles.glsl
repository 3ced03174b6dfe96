// Halves of runs of codes of 4 or 5 bits: what packed_blocks.glsl and packed_k.glsl share. Define before: FIFTH, a struct
// Words with two vectors of codes and, if FIFTH, two words of upper bits, and `vec4 values(uvec4 four)`.
Words words;
uvec4 now;
vec4 steps;
float minimum;
uint fifth;

vec4 values(uvec4 four);

void choose_half(uint h) {
    now = h == 0u ? words.first : words.second;
#if FIFTH
    fifth = h == 0u ? words.fifths.x : words.fifths.y;
#endif
}

void octet(uint i, out vec4 low, out vec4 high) {
    uint codes = i < 2u ? (i == 0u ? now.x : now.y) : (i == 2u ? now.z : now.w);
    uvec4 lower = nibbles(codes);
    uvec4 upper = nibbles(codes >> 16);
#if FIFTH
    const uvec4 FIFTHS = uvec4(0x10u, 0x100u, 0x1000u, 0x10000u);
    lower |= uvec4(fifth << (4u - i)) & FIFTHS;
    upper |= uvec4(fifth >> (12u + i)) & FIFTHS;
#endif
    low = values(lower);
    high = values(upper);
}

uint least_weight() {
    return NO_KEY;
}
