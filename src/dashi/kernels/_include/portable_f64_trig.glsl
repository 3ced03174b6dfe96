// sin and cos for every finite argument: quarter turns are counted exactly, in integers (Payne and Hanek's reduction,
// doi:10.1145/1057600.1057602). Results are within 1 ulp.
#ifndef PORTABLE_F64_TRIG_GLSL
#define PORTABLE_F64_TRIG_GLSL

// a * b + c + carry: the low word; the high word is the next carry.
uint p_multiply_add(uint a, uint b, uint c, inout uint carry) {
    uint64_t total = uint64_t(a) * uint64_t(b) + uint64_t(c) + uint64_t(carry);
    carry = uint(total >> 32);
    return uint(total);
}

// n as a double, exactly, for n < 2^52: the fraction of 2^52 + n.
double p_small_integer(uint64_t n) {
    return uint64BitsToDouble(n | 0x4330000000000000ul) - 4503599627370496.0lf;
}

// size = quadrant * pi/2 + (r + low), |r| <= pi/4. Six words of 2/pi, from the bit that weighs 4 quarter turns.
void p_reduce_turns(double size, out double r, out double low, out uint quadrant) {
    const uint two_over_pi[39] = uint[39](
        0u, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
        0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu,
        0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu,
        0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du,
        0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u
    );
    uint64_t bits = doubleBitsToUint64(size);
    r = size;
    low = 0.0lf;
    quadrant = 0u;
    if (bits < 0x3fe921fb54442d18ul) {
        return;
    }
    uint m0 = uint(bits);
    uint m1 = (uint(bits >> 32) & 0xfffffu) | 0x100000u;
    uint start = uint(bits >> 52) - 1013u;
    uint first = start >> 5;
    uint offset = start & 31u;
    uint w1 = two_over_pi[first + 1u];
    uint w2 = two_over_pi[first + 2u];
    uint w3 = two_over_pi[first + 3u];
    uint w4 = two_over_pi[first + 4u];
    uint w5 = two_over_pi[first + 5u];
    uint w6 = two_over_pi[first + 6u];
    uint w0 = p_funnel(two_over_pi[first], w1, offset);
    w1 = p_funnel(w1, w2, offset);
    w2 = p_funnel(w2, w3, offset);
    w3 = p_funnel(w3, w4, offset);
    w4 = p_funnel(w4, w5, offset);
    w5 = p_funnel(w5, w6, offset);
    uint carry = 0u;
    uint p5 = p_multiply_add(m0, w5, 0u, carry);
    uint p4 = p_multiply_add(m0, w4, 0u, carry);
    uint p3 = p_multiply_add(m0, w3, 0u, carry);
    uint p2 = p_multiply_add(m0, w2, 0u, carry);
    uint p1 = p_multiply_add(m0, w1, 0u, carry);
    uint p0 = p_multiply_add(m0, w0, 0u, carry);
    carry = 0u;
    p4 = p_multiply_add(m1, w5, p4, carry);
    p3 = p_multiply_add(m1, w4, p3, carry);
    p2 = p_multiply_add(m1, w3, p2, carry);
    p1 = p_multiply_add(m1, w2, p1, carry);
    p0 = p_multiply_add(m1, w1, p0, carry);
    uint f0 = p_funnel(p0, p1, 2u);
    bool negative = (f0 >> 31) != 0u;
    quadrant = (p0 >> 30) + (negative ? 1u : 0u);
    uint flip = negative ? 0xffffffffu : 0u;
    f0 ^= flip;
    uint f1 = p_funnel(p1, p2, 2u) ^ flip;
    uint f2 = p_funnel(p2, p3, 2u) ^ flip;
    uint f3 = p_funnel(p3, p4, 2u) ^ flip;
    uint f4 = p_funnel(p4, p5, 2u) ^ flip;
    // Three exact floats whose sum is the fraction; then times pi/2, in two parts.
    double a = p_small_integer((uint64_t(f0) << 16) | uint64_t(f1 >> 16)) * 3.552713678800501e-15lf;
    double b = p_small_integer((uint64_t(f1 & 0xffffu) << 32) | uint64_t(f2)) * 1.262177448353619e-29lf;
    double c = p_small_integer((uint64_t(f3) << 16) | uint64_t(f4 >> 16)) * 4.484155085839415e-44lf;
    double t = b + c;
    double s = a + t;
    double rest = (t - (s - a)) + (c - (t - b));
    double head = uint64BitsToDouble(doubleBitsToUint64(s) & 0xfffffffff8000000ul);
    double main_part = head * 1.5707963109016418lf;
    double small = (s - head) * 1.5707963109016418lf + (s * 1.5893254773528196e-08lf + rest * 1.5707963109016418lf);
    r = main_part + small;
    low = small - (r - main_part);
    r = negative ? -r : r;
    low = negative ? -low : low;
}

double p_sine_near(double r, double low) {
    double z = r * r;
    double p = -7.586691094197958e-13lf;
    p = p * z + 1.6058531516797758e-10lf;
    p = p * z + -2.5052106231802837e-08lf;
    p = p * z + 2.7557319219337312e-06lf;
    p = p * z + -0.00019841269841265063lf;
    p = p * z + 0.008333333333333331lf;
    p = p * z + -0.16666666666666666lf;
    return r + ((r * z) * p + low * (1.0lf - 0.5lf * z));
}

double p_cosine_near(double r, double low) {
    double z = r * r;
    double p = -1.1382623647474604e-11lf;
    p = p * z + 2.087614614655861e-09lf;
    p = p * z + -2.7557317271145144e-07lf;
    p = p * z + 2.480158729876456e-05lf;
    p = p * z + -0.0013888888888887398lf;
    p = p * z + 0.041666666666666664lf;
    double square = 0.5lf * z;
    double w = 1.0lf - square;
    return w + (((1.0lf - w) - square) + ((z * z) * p - r * low));
}

// sin (first = 0) or cos (first = 1) of size >= 0.
double p_wave(double size, uint first) {
    double r, low;
    uint quadrant;
    p_reduce_turns(size, r, low, quadrant);
    quadrant += first;
    double result = (quadrant & 1u) != 0u ? p_cosine_near(r, low) : p_sine_near(r, low);
    return (quadrant & 2u) != 0u ? -result : result;
}

double p_sin(double x) {
    uint64_t bits = doubleBitsToUint64(canon(x));
    double size = uint64BitsToDouble(bits & 0x7ffffffffffffffful);
    double result = p_wave(size < 3.725290298461914e-09lf ? 0.0lf : size, 0u);
    result = size < 3.725290298461914e-09lf ? size : result;
    result = bits > 0x7ffffffffffffffful ? -result : result;
    return (bits & 0x7ffffffffffffffful) >= F64_INF ? uint64BitsToDouble(F64_NAN) : canon(result);
}

double p_cos(double x) {
    uint64_t bits = doubleBitsToUint64(canon(x)) & 0x7ffffffffffffffful;
    double size = uint64BitsToDouble(bits);
    double result = p_wave(size < 3.725290298461914e-09lf ? 0.0lf : size, 1u);
    return bits >= F64_INF ? uint64BitsToDouble(F64_NAN) : canon(result);
}

#endif
