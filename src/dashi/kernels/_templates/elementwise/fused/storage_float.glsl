// Floats become integers by truncation, saturated at the ends of the type; NaN becomes 0. Integers become the nearest
// float, ties to even.
#if T_IS_F64
T from_f32(uint w) {
    return canon(T(canon(uintBitsToFloat(w))));
}

T from_f64(uint low, uint high) {
    return canon(packDouble2x32(uvec2(low, high)));
}

T from_u32(uint w) {
    return T(w);
}

T from_i32(uint w) {
    return T(int(w));
}

// Both parts are exact; their sum is rounded once.
T from_u64(uint low, uint high) {
    return mul(T(high), T(4294967296.0)) + T(low);
}

T from_i64(uint low, uint high) {
    return mul(T(int(high)), T(4294967296.0)) + T(low);
}

// The nearest fp32, ties to even: too large ones are infinite, too small ones +0.
float narrowed(T v) {
    uvec2 words = unpackDouble2x32(v);
    uint64_t size = packUint2x32(uvec2(words.x, words.y & 0x7fffffffu));
    uint64_t rounded = (size + 0x0ffffffful + (size >> 29 & 1ul)) >> 29;
    uint bits = uint(clamp(rounded, 896ul << 23, 1151ul << 23) - (896ul << 23));
    bits = is_nan_bits(v) ? F32_NAN : bits;
    return canon(uintBitsToFloat(bits | (words.y & 0x80000000u)));
}

uvec2 to_f64(T v) {
    return unpackDouble2x32(v);
}

uvec2 to_u64(T v) {
    bool least = is_nan_bits(v) || v <= T(0);
    bool most = v >= T(18446744073709551616.0LF);
    return least ? uvec2(0u) : (most ? uvec2(0xffffffffu) : unpackUint2x32(uint64_t(v)));
}

uvec2 to_i64(T v) {
    bool least = v <= T(-9223372036854775808.0LF);
    bool most = v >= T(9223372036854775808.0LF);
    uvec2 ends = least ? uvec2(0u, 0x80000000u) : uvec2(0xffffffffu, 0x7fffffffu);
    return is_nan_bits(v) ? uvec2(0u) : (least || most ? ends : unpackUint2x32(uint64_t(int64_t(v))));
}
#else
T from_f32(uint w) {
    return canon(uintBitsToFloat(w));
}

float narrowed(T v) {
    return v;
}

T from_u32(uint w) {
    return T(w & 0xffff0000u) + T(w & 0xffffu);
}

T from_i32(uint w) {
    T size = from_u32((w & 0x80000000u) != 0u ? ~w + 1u : w);
    return (w & 0x80000000u) != 0u ? -size : size;
}

// The upper 32 bits that count, the last of them set where any below is: rounded as all of them would be.
T from_u64(uint low, uint high) {
    uint shift = uint(findMSB(high) + 1);
    uint up = 32u - shift;
    uint whole = shift == 0u ? low : (shift == 32u ? high : high << up | low >> shift);
    uint lost = shift == 0u ? 0u : (shift == 32u ? low : low << up);
    return mul(from_u32(whole | (lost != 0u ? 1u : 0u)), uintBitsToFloat(127u + shift << 23));
}

uvec2 negated(uint low, uint high) {
    return uvec2(~low + 1u, ~high + (low == 0u ? 1u : 0u));
}

T from_i64(uint low, uint high) {
    bool below = (high & 0x80000000u) != 0u;
    uvec2 size = below ? negated(low, high) : uvec2(low, high);
    T value = from_u64(size.x, size.y);
    return below ? -value : value;
}

// fp32 has the exponents of fp64 within its own; subnormals are none of them.
T from_f64(uint low, uint high) {
    uint size = high & 0x7fffffffu;
    uint lost = low & 0x1fffffffu;
    uint bits = (clamp(size, 896u << 20, 1151u << 20) - (896u << 20)) << 3 | low >> 29;
    bits += lost > 0x10000000u || (lost == 0x10000000u && (bits & 1u) != 0u) ? 1u : 0u;
    bits = size < 896u << 20 ? 0u : (size >= 1151u << 20 ? 0x7f800000u : bits);
    bool nan = size > 0x7ff00000u || (size == 0x7ff00000u && low != 0u);
    return canon(uintBitsToFloat(nan ? F32_NAN : bits | (high & 0x80000000u)));
}

// Exact: fp64 has more exponents and a longer fraction.
uvec2 to_f64(T v) {
    uint bits = floatBitsToUint(v);
    uint size = bits & 0x7fffffffu;
    uint high = (size >> 3) + (896u << 20);
    high = size == 0u ? 0u : (size >= 0x7f800000u ? 0x7ff00000u : high);
    uvec2 number = uvec2(size >= 0x7f800000u ? 0u : bits << 29, high | (bits & 0x80000000u));
    return size > 0x7f800000u ? uvec2(0u, 0x7ff80000u) : number;
}

// |v| below 2^64, cut to an integer.
uvec2 integer_words(T size) {
    uint bits = floatBitsToUint(size);
    uint whole = (bits & 0x007fffffu) | 0x00800000u;
    uint up = max(bits >> 23, 150u) - 150u;
    uvec2 large = up >= 32u ? uvec2(0u, whole << (up - 32u)) : uvec2(whole << up, whole >> 1u >> (31u - up));
    return size < T(16777216.0) ? uvec2(uint(size), 0u) : large;
}

uvec2 to_u64(T v) {
    bool least = is_nan_bits(v) || v <= T(0);
    bool most = v >= T(18446744073709551616.0);
    return least ? uvec2(0u) : (most ? uvec2(0xffffffffu) : integer_words(v));
}

uvec2 to_i64(T v) {
    bool least = v <= T(-9223372036854775808.0);
    bool most = v >= T(9223372036854775808.0);
    uvec2 size = integer_words(abs(v));
    uvec2 number = v < T(0) ? negated(size.x, size.y) : size;
    uvec2 ends = least ? uvec2(0u, 0x80000000u) : uvec2(0xffffffffu, 0x7fffffffu);
    return is_nan_bits(v) ? uvec2(0u) : (least || most ? ends : number);
}
#endif

T from_f16(uint h) {
    return canon(T(f16_value(h)));
}

T from_bf16(uint h) {
    return canon(T(bf16_value(h)));
}

uint to_f32(T v) {
    return floatBitsToUint(narrowed(v));
}

uint to_f16(T v) {
    return f16_bits(narrowed(v));
}

uint to_bf16(T v) {
    return bf16_bits(narrowed(v));
}

uint to_u32(T v) {
    bool least = is_nan_bits(v) || v <= T(0);
    bool most = v >= T(4294967296.0);
    return least ? 0u : (most ? 0xffffffffu : uint(v));
}

uint to_i32(T v) {
    bool least = v <= T(-2147483648.0);
    bool most = v >= T(2147483648.0);
    uint ends = least ? 0x80000000u : 0x7fffffffu;
    return is_nan_bits(v) ? 0u : (least || most ? ends : uint(int(v)));
}

uint to_u16(T v) {
    return min(to_u32(v), 0xffffu);
}

uint to_u8(T v) {
    return min(to_u32(v), 0xffu);
}

uint to_i16(T v) {
    return uint(clamp(int(to_i32(v)), -32768, 32767)) & 0xffffu;
}

uint to_i8(T v) {
    return uint(clamp(int(to_i32(v)), -128, 127)) & 0xffu;
}

uint to_bool(T v) {
    return is_nan_bits(v) || v != T(0) ? 1u : 0u;
}
