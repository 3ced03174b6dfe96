// atan2(y, x), the angle of the point (x, y) in (-pi, pi], and atan(x), the angle of (1, x); within 1 ulp. There is no -0:
// the angle of (x, 0) is 0 or pi, that of (0, 0) is 0. NaN gives NaN.
#ifndef PORTABLE_F32_ATAN_GLSL
#define PORTABLE_F32_ATAN_GLSL

// About 1/d for d in [1, 4), within 1/60: enough for a correction.
float p_rough_reciprocal(float d) {
    float r = uintBitsToFloat(0x7ef311c7u - floatBitsToUint(d));
    return r + r * (1.0 - d * r);
}

float p_head(float v) {
    return uintBitsToFloat(floatBitsToUint(v) & 0xfffff000u);
}

// (top - t bottom) / bottom for t = top / bottom, rounded, where bottom has the rest `low`: what t lacks.
float p_quotient_rest(float top, float bottom, float low, float t) {
    float a = p_head(t);
    float b = p_head(bottom);
    float c = t - a;
    float d = bottom - b;
    float rest = (((top - a * b) - a * d) - c * b) - c * d;
    return (rest - t * low) * p_rough_reciprocal(bottom);
}

// t - (atan(t) without the rest of t) for |t| <= 7/16.
float p_atan_rest(float t) {
    float z = t * t;
    float p = -0.0482209138572216;
    p = p * z + 0.0853203609585762;
    p = p * z + -0.110582135617733;
    p = p * z + 0.14283399283885956;
    p = p * z + -0.1999996304512024;
    p = p * z + 0.3333333432674408;
    return (t * z) * p;
}

// The smaller of |x| and |y| over the larger is n / d, the tangent of an angle up to pi/4; with c = 0, 1/2 or 1,
// n / d = tan(atan(c) + atan(t)) for t = (n - c d) / (d + c n). Both parts of t are used, and of the angle added.
float p_atan2(float y, float x) {
    const float angles[12] = float[12](
        0.0, 1.5707963705062866, 3.1415927410125732, 1.5707963705062866, 0.46364760398864746,
        1.1071487665176392, 2.677945137023926, 2.0344438552856445, 0.7853981852531433, 0.7853981852531433,
        2.356194496154785, 2.356194496154785
    );
    const float angles_low[12] = float[12](
        0.0, -4.371138828673793e-08, -8.742277657347586e-08, -4.371138828673793e-08, 5.01215868808913e-09,
        -4.872354963936232e-08, -9.243493792610025e-08, 8.051005551124035e-08, -2.1855694143368964e-08,
        -2.1855694143368964e-08, -5.962440319251527e-09, -5.962440319251527e-09
    );
    uint top = floatBitsToUint(canon(y));
    uint bottom = floatBitsToUint(canon(x));
    uint sign = top & 0x80000000u;
    bool backward = (bottom & 0x80000000u) != 0u;
    top &= 0x7fffffffu;
    bottom &= 0x7fffffffu;
    bool nan = top > F32_INF || bottom > F32_INF;
    bool steep = top > bottom;
    uint n = steep ? bottom : top;
    uint d = steep ? top : bottom;
    bool same = nan || n == F32_INF;  // the angle of two infinities is that of 1 and 1
    n = same ? 0x3f800000u : n;
    d = same || d == 0u ? 0x3f800000u : d;
    int gap = int(d >> 23) - int(n >> 23);
    bool far = gap > 30;
    float large = uintBitsToFloat((d & 0x7fffffu) | 0x3f800000u);
    float small = uintBitsToFloat(far ? 0x3f800000u : (n & 0x7fffffu) | (uint(127 - gap) << 23));
    uint piece = far || small < 0.4375 * large ? 0u : (small < 0.6875 * large ? 1u : 2u);
    float c = piece == 0u ? 0.0 : (piece == 1u ? 0.5 : 1.0);
    float over = small - c * large;
    float share = c * small;
    float under = large + share;
    float low = share - (under - large);
    float t = p_divide(far ? uintBitsToFloat(n) : over, far ? uintBitsToFloat(d) : under);
    float rest = far ? 0.0 : p_quotient_rest(over, under, low, t);
    bool linear = abs(t) < 0.0001220703125;
    float s = linear ? 0.0 : t;
    float tail = (rest - rest * (s * s)) - p_atan_rest(s);
    bool down = steep != backward;
    t = down ? -t : t;
    tail = down ? -tail : tail;
    uint index = 4u * piece + (backward ? (steep ? 3u : 2u) : (steep ? 1u : 0u));
    uint result = floatBitsToUint(canon(angles[index] + (t + (tail + angles_low[index]))));
    result = result == 0u ? result : result | sign;
    return uintBitsToFloat(nan ? F32_NAN : result);
}

float p_atan(float x) {
    return p_atan2(x, 1.0);
}

#endif
