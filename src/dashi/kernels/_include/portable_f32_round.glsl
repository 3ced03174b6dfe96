// trunc, floor, ceil and round (halves to even): exact. NaN and infinities stay, there is no -0.
#ifndef PORTABLE_F32_ROUND_GLSL
#define PORTABLE_F32_ROUND_GLSL

float p_trunc(float x) {
    uint bits = floatBitsToUint(canon(x));
    int exponent = int((bits & 0x7fffffffu) >> 23) - 127;
    uint below = 0x7fffffu >> clamp(exponent, 0, 23);
    bits = exponent < 23 ? bits & ~below : bits;
    return uintBitsToFloat(exponent < 0 ? 0u : bits);
}

float p_floor(float x) {
    x = canon(x);
    float whole = p_trunc(x);
    return x < 0.0 && floatBitsToUint(whole) != floatBitsToUint(x) ? whole - 1.0 : whole;
}

float p_ceil(float x) {
    x = canon(x);
    float whole = p_trunc(x);
    return x > 0.0 && floatBitsToUint(whole) != floatBitsToUint(x) ? whole + 1.0 : whole;
}

// Adding 2^23 leaves no bit below the point: the sum is rounded to an integer, halves to the even one.
float p_round(float x) {
    uint bits = floatBitsToUint(canon(x));
    uint sign = bits & 0x80000000u;
    uint size = bits & 0x7fffffffu;
    float value = uintBitsToFloat(size < 150u << 23 ? size : 0u);
    uint nearest = floatBitsToUint((value + 8388608.0) - 8388608.0);
    return uintBitsToFloat(size < 150u << 23 ? (nearest == 0u ? 0u : sign | nearest) : bits);
}

#endif
