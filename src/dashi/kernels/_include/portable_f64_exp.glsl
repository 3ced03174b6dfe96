// exp, log, tanh and softplus, each within 1 ulp: sums that matter are kept in two parts.
// Polynomials are interpolations at Chebyshev nodes computed with 60 digits; truncation stays below 0.1 ulp.
#ifndef PORTABLE_F64_EXP_GLSL
#define PORTABLE_F64_EXP_GLSL

const double F64_LN2_HIGH = 0.6931471805592082lf;  // trailing zeros: exact times an exponent
const double F64_LN2_LOW = 7.371002565167799e-13lf;

// e^x = (high + low) * 2^k for x in the range of exp: x = k ln 2 + r, the reduction kept in two parts.
void p_exp_parts(double x, out double high, out double low, out int k) {
    x = abs(x) < 2.7755575615628914e-17lf ? 0.0lf : x;
    double t = x * 1.4426950408889634lf + 6755399441055744.0lf;
    k = int(unpackDouble2x32(t).x);
    double n = t - 6755399441055744.0lf;
    double near = x - n * F64_LN2_HIGH;
    double rest = n * F64_LN2_LOW;
    double r = near - rest;
    double tail = (near - r) - rest;
    double p = 2.0914686968086876e-09lf;
    p = p * r + 2.5105217004720745e-08lf;
    p = p * r + 2.75572736431103e-07lf;
    p = p * r + 2.7557255400206422e-06lf;
    p = p * r + 2.4801587325547743e-05lf;
    p = p * r + 0.00019841269874820627lf;
    p = p * r + 0.0013888888888883748lf;
    p = p * r + 0.008333333333326136lf;
    p = p * r + 0.04166666666666667lf;
    p = p * r + 0.1666666666666667lf;
    p = p * r + 0.5lf;
    double s = r + ((r * r) * p + tail);
    high = 1.0lf + s;
    low = s - (high - 1.0lf);
}

// value * 2^k for positive normal values: 0 below the threshold, infinity above the range.
double p_scale_by(double value, int k) {
    uint64_t bits = doubleBitsToUint64(value);
    int exponent = int(bits >> 52) + k;
    bits += uint64_t(k) << 52;
    bits = exponent < 54 ? 0ul : bits;
    return uint64BitsToDouble(exponent > 2046 ? F64_INF : bits);
}

double p_power_of_two_f64(int k) {
    return uint64BitsToDouble(uint64_t(k + 1023) << 52);
}

double p_exp(double x) {
    x = canon(x);
    double y = x > 711.0lf ? 711.0lf : (x < -673.0lf ? -673.0lf : x);
    double high, low;
    int k;
    p_exp_parts(y, high, low, k);
    return is_nan_bits(x) ? x : p_scale_by(high, k);
}

// log(1 + f) = f - (square - small) for f in [-1/4, 1/2], with square = f^2 / 2 and s = f / (2 + f).
void p_log_rest(double f, out double square, out double small) {
    double d = 2.0lf + f;
    double r = (0.10670556973896733lf * d + -0.6802480070859167lf) * d + 1.4342729119991664lf;
    r = r + r * (1.0lf - d * r);
    r = r + r * (1.0lf - d * r);
    r = r + r * (1.0lf - d * r);
    double s = f * r;
    double z = s * s;
    double p = 0.13609030262858499lf;
    p = p * z + 0.13209708242059462lf;
    p = p * z + 0.15388867805613718lf;
    p = p * z + 0.18181737626302938lf;
    p = p * z + 0.2222222304835159lf;
    p = p * z + 0.28571428567275936lf;
    p = p * z + 0.4000000000000794lf;
    p = p * z + 0.6666666666666666lf;
    square = 0.5lf * (f * f);
    small = s * (square + z * p);
}

double p_log(double x) {
    uint64_t bits = doubleBitsToUint64(canon(x));
    uint64_t upper = (bits >> 51) & 1ul;  // significands from 1.5 belong to the next power of two
    double f = uint64BitsToDouble((bits & 0xffffffffffffful) | ((1023ul - upper) << 52)) - 1.0lf;
    double k = double(int(bits >> 52) - 1023 + int(upper));
    double square, small;
    p_log_rest(f, square, small);
    double rest = square - (small + k * F64_LN2_LOW);
    uint64_t result = doubleBitsToUint64(canon(k * F64_LN2_HIGH - (rest - f)));
    result = bits == F64_INF ? F64_INF : result;
    result = bits == 0ul ? 0x8000000000000000ul | F64_INF : result;
    return uint64BitsToDouble(bits > F64_INF ? F64_NAN : result);
}

// 1 - q with q = 2 / (e^2y + 1): q is cut to half a significand, so that its remainder is exact.
double p_tanh_large(double y) {
    double high, low;
    int k;
    p_exp_parts(2.0lf * y, high, low, k);
    double power = p_power_of_two_f64(k);
    high *= power;
    low *= power;
    double d = high + 1.0lf;
    double rest = (1.0lf - (d - high)) + low;
    uint64_t bits = doubleBitsToUint64(d);
    int exponent = int(bits >> 52) - 1023;
    double r = p_near_reciprocal(uint64BitsToDouble((bits & 0xffffffffffffful) | 0x3ff0000000000000ul));
    r *= p_power_of_two_f64(-exponent);
    double q = uint64BitsToDouble(doubleBitsToUint64(2.0lf * r) & 0xfffffffff8000000ul);
    double head = uint64BitsToDouble(bits & 0xfffffffff8000000ul);
    double remainder = ((2.0lf - q * head) - q * (d - head)) - q * rest;
    double w = 1.0lf - q;
    return w + (((1.0lf - w) - q) - remainder * r);
}

double p_tanh(double x) {
    x = canon(x);
    double size = abs(x);
    double result = x;
    if (size >= 0.5lf) {
        result = p_tanh_large(size < 20.0lf ? size : 20.0lf);
        result = x < 0.0lf ? -result : result;
    } else if (size >= 3.725290298461914e-09lf) {
        double z = x * x;
        double p = -2.2948547411684485e-05lf;
        p = p * z + 8.819014552796585e-05lf;
        p = p * z + -0.00023635079097275086lf;
        p = p * z + 0.0005894659482848757lf;
        p = p * z + -0.0014557606808451268lf;
        p = p * z + 0.003592121783201609lf;
        p = p * z + -0.008863235197797702lf;
        p = p * z + 0.021869488525836745lf;
        p = p * z + -0.05396825396808919lf;
        p = p * z + 0.1333333333333323lf;
        p = p * z + -0.3333333333333333lf;
        result = x + (x * z) * p;
    }
    return is_nan_bits(x) ? x : result;
}

// log(1 + e^x) = max(x, 0) + log(1 + u) with u = e^-|x|, summed in two parts.
double p_softplus(double x) {
    x = canon(x);
    double y = -abs(x);
    y = y > -673.0lf ? y : -673.0lf;
    double high, low;
    int k;
    p_exp_parts(y, high, low, k);
    double plain = p_scale_by(high, k);
    bool far = plain < 2.7755575615628914e-17lf;
    double power = p_power_of_two_f64(far ? 0 : k);
    double u = high * power;
    bool upper = u >= 0.5lf;
    double f = upper ? 0.5lf * (u - 1.0lf) : u;
    f = far ? 0.0lf : f;
    double square, small;
    p_log_rest(f, square, small);
    double tail = (low * power) * ((1.0lf - u) + 0.5lf * (u * u));
    small = (small + tail) - square;
    small = upper ? f + (small + F64_LN2_LOW) : small;
    double big = upper ? F64_LN2_HIGH : f;
    double base = x > 0.0lf ? x : 0.0lf;
    double total = base + big;
    double moved = total - base;
    double lost = (base - (total - moved)) + (big - moved);
    double result = total + (lost + small);
    result = far ? (x > 0.0lf ? x : plain) : result;
    return is_nan_bits(x) ? x : result;
}

#endif
