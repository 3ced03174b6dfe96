// Divide and square root, correctly rounded: a Newton estimate on significands in [1, 4), corrected by the exact
// integer remainder (wrapping arithmetic: the remainder is small, what it is made of is not). The reciprocal square
// root is plain Newton: fast, within 1.3 ulp.
#ifndef PORTABLE_F32_ROOT_GLSL
#define PORTABLE_F32_ROOT_GLSL

// About 1/d on [1, 2): minimax quadratic (relative error 1/99), then Newton.
float p_near_reciprocal(float d) {
    float r = (0.3232323229312897 * d + -1.454545497894287) * d + 2.1212120056152344;
    r = r + r * (1.0 - d * r);
    r = r + r * (1.0 - d * r);
    return r;
}

// About 1/sqrt(m) on [1, 4): integer seed (relative error 1/29), then Newton.
float p_near_rsqrt(float m) {
    float y = uintBitsToFloat(0x5f375a86u - (floatBitsToUint(m) >> 1));
    float h = 0.5 * m;
    y = y + y * (0.5 - (h * y) * y);
    y = y + y * (0.5 - (h * y) * y);
    y = y + y * (0.5 - (h * y) * y);
    return y;
}

float p_divide(float a, float b) {
    uint top = floatBitsToUint(canon(a));
    uint bottom = floatBitsToUint(canon(b));
    uint sign = (top ^ bottom) & 0x80000000u;
    top &= 0x7fffffffu;
    bottom &= 0x7fffffffu;
    uint n = (top & 0x7fffffu) | 0x800000u;
    uint d = (bottom & 0x7fffffu) | 0x800000u;
    bool less = n < d;
    int exponent = int(top >> 23) - int(bottom >> 23) + (less ? 126 : 127);
    float value = uintBitsToFloat(n + (less ? 0x3f800000u : 0x3f000000u));
    value *= p_near_reciprocal(uintBitsToFloat(d + 0x3f000000u));
    uint q = floatBitsToUint(value) - 0x3f000000u;
    int rest = int((n << (less ? 24 : 23)) - q * d);
    int unit = int(d);
    // Rounding errors and the Newton truncation add up to less than 4 units: the floor is off by -3..2.
    int off = int(rest >= unit) + int(rest >= 2 * unit);
    off -= int(rest < 0) + int(rest < -unit) + int(rest < -2 * unit);
    q += uint(int(off));
    rest -= int(off) * unit;
    q += rest + rest > unit ? 1u : 0u;  // a quotient is never halfway
    uint bits = sign | ((uint(exponent) << 23) + (q - 0x800000u));
    bits = exponent < 25 || top == 0u || bottom == F32_INF ? 0u : bits;
    bool large = exponent > 254 && top != 0u && bottom != F32_INF;
    bits = large || bottom == 0u || top == F32_INF ? sign | F32_INF : bits;
    bool undefined = (top == 0u && bottom == 0u) || (top == F32_INF && bottom == F32_INF);
    bool nan = undefined || top > F32_INF || bottom > F32_INF;
    return uintBitsToFloat(nan ? F32_NAN : bits);
}

float p_reciprocal(float x) {
    return p_divide(1.0, x);
}

// x = m * 4^half with m in [1, 4), as the bits of m.
uint p_split_even(uint bits, out int half_exponent) {
    int exponent = int(bits >> 23);
    int even = 128 - (exponent & 1);
    half_exponent = (exponent - even) >> 1;
    return (bits & 0x7fffffu) | (uint(even) << 23);
}

float p_sqrt(float x) {
    uint given = floatBitsToUint(canon(x));
    int half_exponent;
    uint m = p_split_even(given & 0x7fffffffu, half_exponent);
    float value = uintBitsToFloat(m);
    uint s = floatBitsToUint(value * p_near_rsqrt(value)) - 0x3f000000u;
    uint scaled = ((m & 0x7fffffu) | 0x800000u) << (23 + int(m >> 23) - 127);
    int rest = int(scaled - s * s);
    int twice = int(s + s);
    // Rounding errors add up to less than 3 units: the floor is off by -3..2.
    int off = int(rest > twice) + int(rest >= 2 * twice + 4);
    off -= int(rest < 0) + int(rest <= -twice) + int(rest < 4 - 2 * twice);
    rest -= int(off) * (twice + int(off));
    s += uint(int(off));
    s += rest > int(s) ? 1u : 0u;  // a root is never halfway
    uint bits = (uint(half_exponent + 127) << 23) + (s - 0x800000u);
    bits = given == 0u || given == F32_INF ? given : bits;
    return uintBitsToFloat(given > F32_INF ? F32_NAN : bits);
}

float p_rsqrt(float x) {
    uint given = floatBitsToUint(canon(x));
    int half_exponent;
    uint m = p_split_even(given & 0x7fffffffu, half_exponent);
    uint bits = floatBitsToUint(p_near_rsqrt(uintBitsToFloat(m))) - (uint(half_exponent) << 23);
    bits = given == F32_INF ? 0u : bits;
    bits = given == 0u ? F32_INF : bits;
    return uintBitsToFloat(given > F32_INF ? F32_NAN : bits);
}

#endif
