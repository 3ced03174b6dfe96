// trunc, floor, ceil and round (halves to even): exact. NaN and infinities stay, there is no -0.
#ifndef PORTABLE_F64_ROUND_GLSL
#define PORTABLE_F64_ROUND_GLSL

double p_trunc(double x) {
    uint64_t bits = doubleBitsToUint64(canon(x));
    int exponent = int((bits & 0x7ffffffffffffffful) >> 52) - 1023;
    uint64_t below = 0xffffffffffffful >> clamp(exponent, 0, 52);
    bits = exponent < 52 ? bits & ~below : bits;
    return uint64BitsToDouble(exponent < 0 ? 0ul : bits);
}

double p_floor(double x) {
    x = canon(x);
    double whole = p_trunc(x);
    return x < 0.0lf && doubleBitsToUint64(whole) != doubleBitsToUint64(x) ? whole - 1.0lf : whole;
}

double p_ceil(double x) {
    x = canon(x);
    double whole = p_trunc(x);
    return x > 0.0lf && doubleBitsToUint64(whole) != doubleBitsToUint64(x) ? whole + 1.0lf : whole;
}

// Adding 2^52 leaves no bit below the point: the sum is rounded to an integer, halves to the even one.
double p_round(double x) {
    uint64_t bits = doubleBitsToUint64(canon(x));
    uint64_t sign = bits & 0x8000000000000000ul;
    uint64_t size = bits & 0x7ffffffffffffffful;
    double value = uint64BitsToDouble(size < 1075ul << 52 ? size : 0ul);
    uint64_t nearest = doubleBitsToUint64((value + 4503599627370496.0lf) - 4503599627370496.0lf);
    return uint64BitsToDouble(size < 1075ul << 52 ? (nearest == 0ul ? 0ul : sign | nearest) : bits);
}

#endif
