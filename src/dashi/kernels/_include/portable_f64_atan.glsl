// atan2(y, x), the angle of the point (x, y) in (-pi, pi], and atan(x), the angle of (1, x); within 1 ulp. There is no -0:
// the angle of (x, 0) is 0 or pi, that of (0, 0) is 0. NaN gives NaN.
#ifndef PORTABLE_F64_ATAN_GLSL
#define PORTABLE_F64_ATAN_GLSL

// About 1/d for d in [1, 4), within 1/60: enough for a correction.
double p_rough_reciprocal(double d) {
    double r = uint64BitsToDouble(0x7fde623822fc16e6ul - doubleBitsToUint64(d));
    return r + r * (1.0lf - d * r);
}

double p_head(double v) {
    return uint64BitsToDouble(doubleBitsToUint64(v) & 0xfffffffff8000000ul);
}

// (top - t bottom) / bottom for t = top / bottom, rounded, where bottom has the rest `low`: what t lacks.
double p_quotient_rest(double top, double bottom, double low, double t) {
    double a = p_head(t);
    double b = p_head(bottom);
    double c = t - a;
    double d = bottom - b;
    double rest = (((top - a * b) - a * d) - c * b) - c * d;
    return (rest - t * low) * p_rough_reciprocal(bottom);
}

// t - (atan(t) without the rest of t) for |t| <= 7/16.
double p_atan_rest(double t) {
    double z = t * t;
    double p = 0.012515178840708387lf;
    p = p * z + -0.029170557363425057lf;
    p = p * z + 0.04037548230691618lf;
    p = p * z + -0.04701868985523706lf;
    p = p * z + 0.052551325419385356lf;
    p = p * z + -0.05881606750392833lf;
    p = p * z + 0.06666618793257428lf;
    p = p * z + -0.07692305623050438lf;
    p = p * z + 0.09090909033276527lf;
    p = p * z + -0.11111111110153lf;
    p = p * z + 0.1428571428570599lf;
    p = p * z + -0.1999999999999997lf;
    p = p * z + 0.3333333333333333lf;
    return (t * z) * p;
}

// The smaller of |x| and |y| over the larger is n / d, the tangent of an angle up to pi/4; with c = 0, 1/2 or 1,
// n / d = tan(atan(c) + atan(t)) for t = (n - c d) / (d + c n). Both parts of t are used, and of the angle added.
double p_atan2(double y, double x) {
    const double angles[12] = double[12](
        0.0lf, 1.5707963267948966lf, 3.141592653589793lf, 1.5707963267948966lf, 0.4636476090008061lf,
        1.1071487177940904lf, 2.677945044588987lf, 2.0344439357957027lf, 0.7853981633974483lf,
        0.7853981633974483lf, 2.356194490192345lf, 2.356194490192345lf
    );
    const double angles_low[12] = double[12](
        0.0lf, 6.123233995736766e-17lf, 1.2246467991473532e-16lf, 6.123233995736766e-17lf,
        2.2698777452961687e-17lf, 9.40447137356638e-17lf, 1.5527705369303147e-16lf, 2.841996617907152e-17lf,
        3.061616997868383e-17lf, 3.061616997868383e-17lf, 9.184850993605148e-17lf, 9.184850993605148e-17lf
    );
    uint64_t top = doubleBitsToUint64(canon(y));
    uint64_t bottom = doubleBitsToUint64(canon(x));
    uint64_t sign = top & 0x8000000000000000ul;
    bool backward = (bottom & 0x8000000000000000ul) != 0ul;
    top &= 0x7ffffffffffffffful;
    bottom &= 0x7ffffffffffffffful;
    bool nan = top > F64_INF || bottom > F64_INF;
    bool steep = top > bottom;
    uint64_t n = steep ? bottom : top;
    uint64_t d = steep ? top : bottom;
    bool same = nan || n == F64_INF;  // the angle of two infinities is that of 1 and 1
    n = same ? 0x3ff0000000000000ul : n;
    d = same || d == 0ul ? 0x3ff0000000000000ul : d;
    int gap = int(d >> 52) - int(n >> 52);
    bool far = gap > 60;
    double large = uint64BitsToDouble((d & 0xffffffffffffful) | 0x3ff0000000000000ul);
    double small = uint64BitsToDouble(far ? 0x3ff0000000000000ul : (n & 0xffffffffffffful) | (uint64_t(1023 - gap) << 52));
    uint piece = far || small < 0.4375lf * large ? 0u : (small < 0.6875lf * large ? 1u : 2u);
    double c = piece == 0u ? 0.0lf : (piece == 1u ? 0.5lf : 1.0lf);
    double over = small - c * large;
    double share = c * small;
    double under = large + share;
    double low = share - (under - large);
    double t = p_divide(far ? uint64BitsToDouble(n) : over, far ? uint64BitsToDouble(d) : under);
    double rest = far ? 0.0lf : p_quotient_rest(over, under, low, t);
    bool linear = abs(t) < 3.725290298461914e-09lf;
    double s = linear ? 0.0lf : t;
    double tail = (rest - rest * (s * s)) - p_atan_rest(s);
    bool down = steep != backward;
    t = down ? -t : t;
    tail = down ? -tail : tail;
    uint index = 4u * piece + (backward ? (steep ? 3u : 2u) : (steep ? 1u : 0u));
    uint64_t result = doubleBitsToUint64(canon(angles[index] + (t + (tail + angles_low[index]))));
    result = result == 0ul ? result : result | sign;
    return uint64BitsToDouble(nan ? F64_NAN : result);
}

double p_atan(double x) {
    return p_atan2(x, 1.0lf);
}

#endif
