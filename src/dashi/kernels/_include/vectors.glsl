// 16 bytes of T: how they come out of words, and how a function goes over them.
#if T_IS_F64
#define ELEMS 2u
#define TV dvec2
#define KEYS u64vec2
#define OVER(MADE, F, v) MADE(F(v.x), F(v.y))

TV values_of(uvec4 words) {
    return TV(packDouble2x32(words.xy), packDouble2x32(words.zw));
}

// Magnitudes below the threshold become +0; NaNs stay as they are, for sums that are made canonical at their end.
T flushed(T v) {
    uvec2 bits = unpackDouble2x32(v);
    return packDouble2x32((bits.y & 0x7fffffffu) < F64_TINY_HIGH ? uvec2(0u) : bits);
}
#else
#define ELEMS 4u
#define TV vec4
#define KEYS uvec4
#define OVER(MADE, F, v) MADE(F(v.x), F(v.y), F(v.z), F(v.w))

TV values_of(uvec4 words) {
    return uintBitsToFloat(words);
}

T flushed(T v) {
    uint bits = floatBitsToUint(v);
    return uintBitsToFloat((bits & 0x7fffffffu) < F32_TINY ? 0u : bits);
}
#endif
