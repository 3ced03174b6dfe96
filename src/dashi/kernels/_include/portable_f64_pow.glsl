// x^y within 1 ulp: 2^(y log2 x), the logarithm and its product kept in two parts. As in IEEE 754, x^0 and 1^y are 1 also
// for NaN, a negative x has powers of integers only; but there is no -0: 0^y is infinite for every y < 0, and
// (-inf)^y is 0.
#ifndef PORTABLE_F64_POW_GLSL
#define PORTABLE_F64_POW_GLSL

double p_pow_head(double v) {
    return uint64BitsToDouble(doubleBitsToUint64(v) & 0xfffffffff8000000ul);
}

// log2 of a positive number as high + low, high with half a significand: x = 2^k m, compared with 1 or 3/2 by
// s = (m - c) / (m + c); log(m / c) = 2/3 s (3 + s^2 + s^4 p(s^2)).
void p_log2_parts(uint64_t bits, out double high, out double low) {
    double m = uint64BitsToDouble((bits & 0xffffffffffffful) | 0x3ff0000000000000ul);
    bool upper = m >= 1.7320508075688772lf;
    bool middle = m >= 1.224744871391589lf && !upper;
    m = upper ? 0.5lf * m : m;
    double k = double(int(bits >> 52) - 1023 + (upper ? 1 : 0));
    double c = middle ? 1.5lf : 1.0lf;
    double f = m - c;
    double d = m + c;
    double d_low = m - (d - c);
    uint64_t d_bits = doubleBitsToUint64(d);
    double r = p_near_reciprocal(uint64BitsToDouble((d_bits & 0xffffffffffffful) | 0x3ff0000000000000ul));
    r = d_bits >= 0x4000000000000000ul ? 0.5lf * r : r;
    double s_high = p_pow_head(f * r);
    double d_high = p_pow_head(d);
    double s_low = (((f - s_high * d_high) - s_high * (d - d_high)) - s_high * d_low) * r;
    double s = s_high + s_low;
    double z = s * s;
    double p = 0.2055053304833352lf;
    p = p * z + 0.23070557336969208lf;
    p = p * z + 0.2727276109825097lf;
    p = p * z + 0.33333333252190733lf;
    p = p * z + 0.4285714285721399lf;
    p = p * z + 0.5999999999999999lf;
    double z_high = s_high * s_high;
    double rest = s_low * (s_high + s) + (z * z) * p;
    double v_high = p_pow_head((3.0lf + z_high) + rest);
    double v_low = rest - ((v_high - 3.0lf) - z_high);
    double u = s_high * v_high;
    double w = s_low * v_high + v_low * s;
    double p_high = p_pow_head(u + w);
    double p_low = w - (p_high - u);
    double l_high = 0.9617966860532761lf * p_high;
    double l_low = (7.872699542894897e-09lf * p_high + p_low * 0.9617966939259756lf) + (middle ? 1.350039202129749e-08lf : 0.0lf);
    double c_high = middle ? 0.5849624872207642lf : 0.0lf;
    high = p_pow_head(((l_high + l_low) + c_high) + k);
    low = l_low - (((high - k) - c_high) - l_high);
}

// 2^(high + low), high + low within the range of exponents.
double p_exp2_parts(double high, double low) {
    double shifted = (high + low) + 6755399441055744.0lf;
    int k = int(unpackDouble2x32(shifted).x);
    double near = high - (shifted - 6755399441055744.0lf);
    double w = near + low;
    bool none = abs(w) < 2.7755575615628914e-17lf;
    double w_high = none ? 0.0lf : p_pow_head(w);
    double w_low = none ? 0.0lf : low - (w_high - near);
    double main_part = w_high * 0.6931471675634384lf;
    double small = w_low * 0.6931471805599453lf + w_high * 1.2996506893889889e-08lf;
    double r = main_part + small;
    double tail = small - (r - main_part);
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
    double total = 1.0lf + r;
    double lost = r - (total - 1.0lf);
    return p_scale_by(total + (lost + ((r * r) * p + tail)), k);
}

double p_pow(double x, double y) {
    uint64_t base = doubleBitsToUint64(canon(x));
    uint64_t power = doubleBitsToUint64(canon(y));
    uint64_t base_size = base & 0x7ffffffffffffffful;
    uint64_t power_size = power & 0x7ffffffffffffffful;
    bool whole_base = base_size != 0ul && base_size < F64_INF;
    double high, low;
    p_log2_parts(whole_base ? base_size : 0x3ff0000000000000ul, high, low);
    uint64_t limited = power_size < 0x3bd0000000000000ul ? 0ul : min(power_size, 0x43f0000000000000ul);
    double by = uint64BitsToDouble(limited == 0ul ? 0ul : limited | (power & 0x8000000000000000ul));
    double by_high = p_pow_head(by);
    double z_high = by_high * high;
    double z_low = (by - by_high) * high + by * low;
    double z = z_high + z_low;
    bool above = z > 1025.0lf;
    bool below = z < -971.0lf;
    z_high = above ? 1025.0lf : (below ? -971.0lf : z_high);
    z_low = above || below ? 0.0lf : z_low;
    uint64_t result = doubleBitsToUint64(p_exp2_parts(z_high, z_low));
    bool grows = (power & 0x8000000000000000ul) == 0ul == (base_size == F64_INF);
    result = whole_base ? result : (grows ? F64_INF : 0ul);
    // Whether y is an integer, and odd: the bits at and below the point.
    int exponent = int(power_size >> 52) - 1023;
    uint64_t significand = (power_size & 0xffffffffffffful) | 0x10000000000000ul;
    int point = clamp(52 - exponent, 0, 52);
    bool inside = exponent >= 0 && exponent <= 52;
    bool integer = exponent > 52 || (inside && (significand & ((1ul << point) - 1ul)) == 0ul);
    bool odd = inside && integer && ((significand >> point) & 1ul) != 0ul;
    bool negative = (base & 0x8000000000000000ul) != 0ul;
    result = negative && odd && result != 0ul ? result | 0x8000000000000000ul : result;
    bool nan = base_size > F64_INF || power_size > F64_INF || (negative && whole_base && !integer);
    result = nan ? F64_NAN : result;
    return uint64BitsToDouble(power_size == 0ul || base == 0x3ff0000000000000ul ? 0x3ff0000000000000ul : result);
}

#endif
