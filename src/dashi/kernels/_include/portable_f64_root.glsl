// Divide and square root, correctly rounded: a Newton estimate on significands in [1, 4), corrected by the exact
// integer remainder (wrapping arithmetic: the remainder is small, what it is made of is not). The reciprocal square
// root is plain Newton: fast, within 1.3 ulp.
#ifndef PORTABLE_F64_ROOT_GLSL
#define PORTABLE_F64_ROOT_GLSL

// About 1/d on [1, 2): minimax quadratic (relative error 1/99), then Newton.
double p_near_reciprocal(double d) {
    double r = (0.32323232323232326lf * d + -1.4545454545454546lf) * d + 2.121212121212121lf;
    r = r + r * (1.0lf - d * r);
    r = r + r * (1.0lf - d * r);
    r = r + r * (1.0lf - d * r);
    return r;
}

// About 1/sqrt(m) on [1, 4): integer seed (relative error 1/29), then Newton.
double p_near_rsqrt(double m) {
    double y = uint64BitsToDouble(0x5fe6eb50c7b537a9ul - (doubleBitsToUint64(m) >> 1));
    double h = 0.5lf * m;
    y = y + y * (0.5lf - (h * y) * y);
    y = y + y * (0.5lf - (h * y) * y);
    y = y + y * (0.5lf - (h * y) * y);
    y = y + y * (0.5lf - (h * y) * y);
    return y;
}

double p_divide(double a, double b) {
    uint64_t top = doubleBitsToUint64(canon(a));
    uint64_t bottom = doubleBitsToUint64(canon(b));
    uint64_t sign = (top ^ bottom) & 0x8000000000000000ul;
    top &= 0x7ffffffffffffffful;
    bottom &= 0x7ffffffffffffffful;
    uint64_t n = (top & 0xffffffffffffful) | 0x10000000000000ul;
    uint64_t d = (bottom & 0xffffffffffffful) | 0x10000000000000ul;
    bool less = n < d;
    int exponent = int(top >> 52) - int(bottom >> 52) + (less ? 1022 : 1023);
    double value = uint64BitsToDouble(n + (less ? 0x3ff0000000000000ul : 0x3fe0000000000000ul));
    value *= p_near_reciprocal(uint64BitsToDouble(d + 0x3fe0000000000000ul));
    uint64_t q = doubleBitsToUint64(value) - 0x3fe0000000000000ul;
    int64_t rest = int64_t((n << (less ? 53 : 52)) - q * d);
    int64_t unit = int64_t(d);
    // Rounding errors and the Newton truncation add up to less than 4 units: the floor is off by -3..3.
    int off = int(rest >= unit) + int(rest >= 2 * unit) + int(rest >= 3 * unit);
    off -= int(rest < 0) + int(rest < -unit) + int(rest < -2 * unit);
    q += uint64_t(int64_t(off));
    rest -= int64_t(off) * unit;
    q += rest + rest > unit ? 1ul : 0ul;  // a quotient is never halfway
    uint64_t bits = sign | ((uint64_t(exponent) << 52) + (q - 0x10000000000000ul));
    bits = exponent < 54 || top == 0ul || bottom == F64_INF ? 0ul : bits;
    bool large = exponent > 2046 && top != 0ul && bottom != F64_INF;
    bits = large || bottom == 0ul || top == F64_INF ? sign | F64_INF : bits;
    bool undefined = (top == 0ul && bottom == 0ul) || (top == F64_INF && bottom == F64_INF);
    bool nan = undefined || top > F64_INF || bottom > F64_INF;
    return uint64BitsToDouble(nan ? F64_NAN : bits);
}

double p_reciprocal(double x) {
    return p_divide(1.0lf, x);
}

// x = m * 4^half with m in [1, 4), as the bits of m.
uint64_t p_split_even(uint64_t bits, out int half_exponent) {
    int exponent = int(bits >> 52);
    int even = 1024 - (exponent & 1);
    half_exponent = (exponent - even) >> 1;
    return (bits & 0xffffffffffffful) | (uint64_t(even) << 52);
}

double p_sqrt(double x) {
    uint64_t given = doubleBitsToUint64(canon(x));
    int half_exponent;
    uint64_t m = p_split_even(given & 0x7ffffffffffffffful, half_exponent);
    double value = uint64BitsToDouble(m);
    uint64_t s = doubleBitsToUint64(value * p_near_rsqrt(value)) - 0x3fe0000000000000ul;
    uint64_t scaled = ((m & 0xffffffffffffful) | 0x10000000000000ul) << (52 + int(m >> 52) - 1023);
    int64_t rest = int64_t(scaled - s * s);
    int64_t twice = int64_t(s + s);
    // Rounding errors add up to less than 3 units: the floor is off by -3..2.
    int off = int(rest > twice) + int(rest >= 2 * twice + 4);
    off -= int(rest < 0) + int(rest <= -twice) + int(rest < 4 - 2 * twice);
    rest -= int64_t(off) * (twice + int64_t(off));
    s += uint64_t(int64_t(off));
    s += rest > int64_t(s) ? 1ul : 0ul;  // a root is never halfway
    uint64_t bits = (uint64_t(half_exponent + 1023) << 52) + (s - 0x10000000000000ul);
    bits = given == 0ul || given == F64_INF ? given : bits;
    return uint64BitsToDouble(given > F64_INF ? F64_NAN : bits);
}

double p_rsqrt(double x) {
    uint64_t given = doubleBitsToUint64(canon(x));
    int half_exponent;
    uint64_t m = p_split_even(given & 0x7ffffffffffffffful, half_exponent);
    uint64_t bits = doubleBitsToUint64(p_near_rsqrt(uint64BitsToDouble(m))) - (uint64_t(half_exponent) << 52);
    bits = given == F64_INF ? 0ul : bits;
    bits = given == 0ul ? F64_INF : bits;
    return uint64BitsToDouble(given > F64_INF ? F64_NAN : bits);
}

#endif
