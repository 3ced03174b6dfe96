// Canonical fp32 values: +0, |v| >= 2^-102, infinities, one NaN. All tests look at the bits: drivers that flush
// subnormals or assume finite values do so in float compares too.
#ifndef PORTABLE_F32_GLSL
#define PORTABLE_F32_GLSL

const uint F32_TINY = 0x0c800000u;  // 2^-102
const uint F32_INF = 0x7f800000u;
const uint F32_NAN = 0x7fc00000u;

bool is_nan_bits(float v) {
    return (floatBitsToUint(v) & 0x7fffffffu) > F32_INF;
}

float canon(float v) {
    uint bits = floatBitsToUint(v);
    uint size = bits & 0x7fffffffu;
    bits = size < F32_TINY ? 0u : bits;
    return uintBitsToFloat(size > F32_INF ? F32_NAN : bits);
}

// The product of canonical values, flushed. A NaN keeps its payload until it is stored through canon.
float mul(float a, float b) {
    uint bits = floatBitsToUint(a * b);
    return uintBitsToFloat((bits & 0x7fffffffu) < F32_TINY ? 0u : bits);
}

// Unsigned key with the order of the values; every NaN has the same, highest key.
uint order_key(float v) {
    uint bits = floatBitsToUint(canon(v));
    return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

float order_value_f32(uint key) {
    return uintBitsToFloat((key & 0x80000000u) != 0u ? key & 0x7fffffffu : ~key);
}

#endif
