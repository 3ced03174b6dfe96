// Canonical fp64 values: +0, |v| >= 2^-969, infinities, one NaN. Tests look at the high word where that is enough:
// 32-bit integer operations are fast everywhere.
#ifndef PORTABLE_F64_GLSL
#define PORTABLE_F64_GLSL

const uint F64_TINY_HIGH = 0x03600000u;  // 2^-969
const uint F64_INF_HIGH = 0x7ff00000u;
const uint F64_NAN_HIGH = 0x7ff80000u;
const uint64_t F64_INF = 0x7ff0000000000000ul;
const uint64_t F64_NAN = 0x7ff8000000000000ul;

bool is_nan_bits(double v) {
    uvec2 bits = unpackDouble2x32(v);
    uint high = bits.y & 0x7fffffffu;
    return high > F64_INF_HIGH || (high == F64_INF_HIGH && bits.x != 0u);
}

double canon(double v) {
    uvec2 bits = unpackDouble2x32(v);
    uint high = bits.y & 0x7fffffffu;
    bits = high < F64_TINY_HIGH ? uvec2(0u) : bits;
    bool nan = high > F64_INF_HIGH || (high == F64_INF_HIGH && bits.x != 0u);
    return packDouble2x32(nan ? uvec2(0u, F64_NAN_HIGH) : bits);
}

// The product of canonical values, flushed. A NaN keeps its payload until it is stored through canon.
double mul(double a, double b) {
    uvec2 bits = unpackDouble2x32(a * b);
    return packDouble2x32((bits.y & 0x7fffffffu) < F64_TINY_HIGH ? uvec2(0u) : bits);
}

// Unsigned key with the order of the values; every NaN has the same, highest key.
uint64_t order_key(double v) {
    uint64_t bits = doubleBitsToUint64(canon(v));
    return (bits >> 63) != 0ul ? ~bits : bits | 0x8000000000000000ul;
}

double order_value_f64(uint64_t key) {
    return uint64BitsToDouble((key >> 63) != 0ul ? key & 0x7ffffffffffffffful : ~key);
}

#endif
