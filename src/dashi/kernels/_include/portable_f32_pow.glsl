// x^y within 1 ulp: 2^(y log2 x), the logarithm and its product kept in two parts. As in IEEE 754, x^0 and 1^y are 1 also
// for NaN, a negative x has powers of integers only; but there is no -0: 0^y is infinite for every y < 0, and
// (-inf)^y is 0.
#ifndef PORTABLE_F32_POW_GLSL
#define PORTABLE_F32_POW_GLSL

float p_pow_head(float v) {
    return uintBitsToFloat(floatBitsToUint(v) & 0xfffff000u);
}

// log2 of a positive number as high + low, high with half a significand: x = 2^k m, compared with 1 or 3/2 by
// s = (m - c) / (m + c); log(m / c) = 2/3 s (3 + s^2 + s^4 p(s^2)).
void p_log2_parts(uint bits, out float high, out float low) {
    float m = uintBitsToFloat((bits & 0x7fffffu) | 0x3f800000u);
    bool upper = m >= 1.7320507764816284;
    bool middle = m >= 1.2247449159622192 && !upper;
    m = upper ? 0.5 * m : m;
    float k = float(int(bits >> 23) - 127 + (upper ? 1 : 0));
    float c = middle ? 1.5 : 1.0;
    float f = m - c;
    float d = m + c;
    float d_low = m - (d - c);
    uint d_bits = floatBitsToUint(d);
    float r = p_near_reciprocal(uintBitsToFloat((d_bits & 0x7fffffu) | 0x3f800000u));
    r = d_bits >= 0x40000000u ? 0.5 * r : r;
    float s_high = p_pow_head(f * r);
    float d_high = p_pow_head(d);
    float s_low = (((f - s_high * d_high) - s_high * (d - d_high)) - s_high * d_low) * r;
    float s = s_high + s_low;
    float z = s * s;
    float p = 0.33755579590797424;
    p = p * z + 0.4285551905632019;
    p = p * z + 0.6000000238418579;
    float z_high = s_high * s_high;
    float rest = s_low * (s_high + s) + (z * z) * p;
    float v_high = p_pow_head((3.0 + z_high) + rest);
    float v_low = rest - ((v_high - 3.0) - z_high);
    float u = s_high * v_high;
    float w = s_low * v_high + v_low * s;
    float p_high = p_pow_head(u + w);
    float p_low = w - (p_high - u);
    float l_high = 0.961669921875 * p_high;
    float l_low = (0.00012677205086220056 * p_high + p_low * 0.9617967009544373) + (middle ? 1.5632211898264359e-06 : 0.0);
    float c_high = middle ? 0.5849609375 : 0.0;
    high = p_pow_head(((l_high + l_low) + c_high) + k);
    low = l_low - (((high - k) - c_high) - l_high);
}

// 2^(high + low), high + low within the range of exponents.
float p_exp2_parts(float high, float low) {
    float shifted = (high + low) + 12582912.0;
    int k = int(floatBitsToUint(shifted)) - 0x4b400000;
    float near = high - (shifted - 12582912.0);
    float w = near + low;
    bool none = abs(w) < 1.4901161193847656e-08;
    float w_high = none ? 0.0 : p_pow_head(w);
    float w_low = none ? 0.0 : low - (w_high - near);
    float main_part = w_high * 0.693115234375;
    float small = w_low * 0.6931471824645996 + w_high * 3.194618329871446e-05;
    float r = main_part + small;
    float tail = small - (r - main_part);
    float p = 0.00019890991097781807;
    p = p * r + 0.0013933649752289057;
    p = p * r + 0.00833331048488617;
    p = p * r + 0.04166646674275398;
    p = p * r + 0.1666666716337204;
    p = p * r + 0.5;
    float total = 1.0 + r;
    float lost = r - (total - 1.0);
    return p_scale_by(total + (lost + ((r * r) * p + tail)), k);
}

float p_pow(float x, float y) {
    uint base = floatBitsToUint(canon(x));
    uint power = floatBitsToUint(canon(y));
    uint base_size = base & 0x7fffffffu;
    uint power_size = power & 0x7fffffffu;
    bool whole_base = base_size != 0u && base_size < F32_INF;
    float high, low;
    p_log2_parts(whole_base ? base_size : 0x3f800000u, high, low);
    uint limited = power_size < 0x2e800000u ? 0u : min(power_size, 0x4f800000u);
    float by = uintBitsToFloat(limited == 0u ? 0u : limited | (power & 0x80000000u));
    float by_high = p_pow_head(by);
    float z_high = by_high * high;
    float z_low = (by - by_high) * high + by * low;
    float z = z_high + z_low;
    bool above = z > 129.0;
    bool below = z < -104.0;
    z_high = above ? 129.0 : (below ? -104.0 : z_high);
    z_low = above || below ? 0.0 : z_low;
    uint result = floatBitsToUint(p_exp2_parts(z_high, z_low));
    bool grows = (power & 0x80000000u) == 0u == (base_size == F32_INF);
    result = whole_base ? result : (grows ? F32_INF : 0u);
    // Whether y is an integer, and odd: the bits at and below the point.
    int exponent = int(power_size >> 23) - 127;
    uint significand = (power_size & 0x7fffffu) | 0x800000u;
    int point = clamp(23 - exponent, 0, 23);
    bool inside = exponent >= 0 && exponent <= 23;
    bool integer = exponent > 23 || (inside && (significand & ((1u << point) - 1u)) == 0u);
    bool odd = inside && integer && ((significand >> point) & 1u) != 0u;
    bool negative = (base & 0x80000000u) != 0u;
    result = negative && odd && result != 0u ? result | 0x80000000u : result;
    bool nan = base_size > F32_INF || power_size > F32_INF || (negative && whole_base && !integer);
    result = nan ? F32_NAN : result;
    return uintBitsToFloat(power_size == 0u || base == 0x3f800000u ? 0x3f800000u : result);
}

#endif
