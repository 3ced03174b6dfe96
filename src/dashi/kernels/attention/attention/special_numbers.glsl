// Numbers that are told apart by their bits.
T minus_infinity() {
#if T_IS_F64
    return packDouble2x32(uvec2(0u, 0xfff00000u));
#else
    return uintBitsToFloat(0xff800000u);
#endif
}

T minus_zero() {
#if T_IS_F64
    return packDouble2x32(uvec2(0u, 0x80000000u));
#else
    return uintBitsToFloat(0x80000000u);
#endif
}

bool is_left_out(T w) {
#if T_IS_F64
    return unpackDouble2x32(w).y == 0x80000000u;
#else
    return floatBitsToUint(w) == 0x80000000u;
#endif
}

bool is_finite(T v) {
#if T_IS_F64
    return (unpackDouble2x32(v).y & 0x7ff00000u) != 0x7ff00000u;
#else
    return (floatBitsToUint(v) & 0x7f800000u) != 0x7f800000u;
#endif
}

// The larger; NaN wins.
T larger(T x, T y) {
    return is_nan_bits(x) || x > y ? x : y;
}

// Whether a product with it may be below the threshold of canon(), if the other factor is as small.
bool is_small(T v) {
#if T_IS_F64
    uint high = unpackDouble2x32(v).y & 0x7fffffffu;
    return high != 0u && high < (539u << 20);  // 2^-484
#else
    uint size = floatBitsToUint(v) & 0x7fffffffu;
    return size != 0u && size < (76u << 23);  // 2^-51
#endif
}
