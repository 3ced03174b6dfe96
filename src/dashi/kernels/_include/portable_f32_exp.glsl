// exp, log, tanh and softplus, each within 1 ulp: sums that matter are kept in two parts.
// Polynomials are interpolations at Chebyshev nodes computed with 60 digits; truncation stays below 0.1 ulp.
#ifndef PORTABLE_F32_EXP_GLSL
#define PORTABLE_F32_EXP_GLSL

const float F32_LN2_HIGH = 0.693145751953125;  // trailing zeros: exact times an exponent
const float F32_LN2_LOW = 1.428606765330187e-06;

// e^x = (high + low) * 2^k for x in the range of exp: x = k ln 2 + r, the reduction kept in two parts.
void p_exp_parts(float x, out float high, out float low, out int k) {
    x = abs(x) < 1.4901161193847656e-08 ? 0.0 : x;
    float t = x * 1.4426950216293335 + 12582912.0;
    k = int(floatBitsToUint(t)) - 0x4b400000;
    float n = t - 12582912.0;
    float near = x - n * F32_LN2_HIGH;
    float rest = n * F32_LN2_LOW;
    float r = near - rest;
    float tail = (near - r) - rest;
    float p = 0.00019890991097781807;
    p = p * r + 0.0013933649752289057;
    p = p * r + 0.00833331048488617;
    p = p * r + 0.04166646674275398;
    p = p * r + 0.1666666716337204;
    p = p * r + 0.5;
    float s = r + ((r * r) * p + tail);
    high = 1.0 + s;
    low = s - (high - 1.0);
}

// value * 2^k for positive normal values: 0 below the threshold, infinity above the range.
float p_scale_by(float value, int k) {
    uint bits = floatBitsToUint(value);
    int exponent = int(bits >> 23) + k;
    bits += uint(k) << 23;
    bits = exponent < 25 ? 0u : bits;
    return uintBitsToFloat(exponent > 254 ? F32_INF : bits);
}

float p_power_of_two_f32(int k) {
    return uintBitsToFloat(uint(k + 127) << 23);
}

float p_exp(float x) {
    x = canon(x);
    float y = x > 89.0 ? 89.0 : (x < -71.0 ? -71.0 : x);
    float high, low;
    int k;
    p_exp_parts(y, high, low, k);
    return is_nan_bits(x) ? x : p_scale_by(high, k);
}

// log(1 + f) = f - (square - small) for f in [-1/4, 1/2], with square = f^2 / 2 and s = f / (2 + f).
void p_log_rest(float f, out float square, out float small) {
    float d = 2.0 + f;
    float r = (0.10670556873083115 * d + -0.6802480220794678) * d + 1.4342728853225708;
    r = r + r * (1.0 - d * r);
    r = r + r * (1.0 - d * r);
    float s = f * r;
    float z = s * s;
    float p = 0.23751342296600342;
    p = p * z + 0.28532543778419495;
    p = p * z + 0.4000031352043152;
    p = p * z + 0.6666666865348816;
    square = 0.5 * (f * f);
    small = s * (square + z * p);
}

float p_log(float x) {
    uint bits = floatBitsToUint(canon(x));
    uint upper = (bits >> 22) & 1u;  // significands from 1.5 belong to the next power of two
    float f = uintBitsToFloat((bits & 0x7fffffu) | ((127u - upper) << 23)) - 1.0;
    float k = float(int(bits >> 23) - 127 + int(upper));
    float square, small;
    p_log_rest(f, square, small);
    float rest = square - (small + k * F32_LN2_LOW);
    uint result = floatBitsToUint(canon(k * F32_LN2_HIGH - (rest - f)));
    result = bits == F32_INF ? F32_INF : result;
    result = bits == 0u ? 0x80000000u | F32_INF : result;
    return uintBitsToFloat(bits > F32_INF ? F32_NAN : result);
}

// 1 - q with q = 2 / (e^2y + 1): q is cut to half a significand, so that its remainder is exact.
float p_tanh_large(float y) {
    float high, low;
    int k;
    p_exp_parts(2.0 * y, high, low, k);
    float power = p_power_of_two_f32(k);
    high *= power;
    low *= power;
    float d = high + 1.0;
    float rest = (1.0 - (d - high)) + low;
    uint bits = floatBitsToUint(d);
    int exponent = int(bits >> 23) - 127;
    float r = p_near_reciprocal(uintBitsToFloat((bits & 0x7fffffu) | 0x3f800000u));
    r *= p_power_of_two_f32(-exponent);
    float q = uintBitsToFloat(floatBitsToUint(2.0 * r) & 0xfffff000u);
    float head = uintBitsToFloat(bits & 0xfffff000u);
    float remainder = ((2.0 - q * head) - q * (d - head)) - q * rest;
    float w = 1.0 - q;
    return w + (((1.0 - w) - q) - remainder * r);
}

float p_tanh(float x) {
    x = canon(x);
    float size = abs(x);
    float result = x;
    if (size >= 0.5) {
        result = p_tanh_large(size < 10.0 ? size : 10.0);
        result = x < 0.0 ? -result : result;
    } else if (size >= 0.0001220703125) {
        float z = x * x;
        float p = -0.006942287553101778;
        p = p * z + 0.02147039584815502;
        p = p * z + -0.05393343046307564;
        p = p * z + 0.1333322525024414;
        p = p * z + -0.3333333134651184;
        result = x + (x * z) * p;
    }
    return is_nan_bits(x) ? x : result;
}

// log(1 + e^x) = max(x, 0) + log(1 + u) with u = e^-|x|, summed in two parts.
float p_softplus(float x) {
    x = canon(x);
    float y = -abs(x);
    y = y > -71.0 ? y : -71.0;
    float high, low;
    int k;
    p_exp_parts(y, high, low, k);
    float plain = p_scale_by(high, k);
    bool far = plain < 1.4901161193847656e-08;
    float power = p_power_of_two_f32(far ? 0 : k);
    float u = high * power;
    bool upper = u >= 0.5;
    float f = upper ? 0.5 * (u - 1.0) : u;
    f = far ? 0.0 : f;
    float square, small;
    p_log_rest(f, square, small);
    float tail = (low * power) * ((1.0 - u) + 0.5 * (u * u));
    small = (small + tail) - square;
    small = upper ? f + (small + F32_LN2_LOW) : small;
    float big = upper ? F32_LN2_HIGH : f;
    float base = x > 0.0 ? x : 0.0;
    float total = base + big;
    float moved = total - base;
    float lost = (base - (total - moved)) + (big - moved);
    float result = total + (lost + small);
    result = far ? (x > 0.0 ? x : plain) : result;
    return is_nan_bits(x) ? x : result;
}

#endif
