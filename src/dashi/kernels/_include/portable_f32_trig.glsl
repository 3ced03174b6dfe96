// sin and cos for every finite argument: quarter turns are counted exactly, in integers (Payne and Hanek's reduction,
// doi:10.1145/1057600.1057602). Results are within 1 ulp.
#ifndef PORTABLE_F32_TRIG_GLSL
#define PORTABLE_F32_TRIG_GLSL

// The upper word of (high:low) << offset, offset in 0..31.
uint p_funnel(uint high, uint low, uint offset) {
    return (high << offset) | ((low >> 1) >> (31u - offset));
}

// size = quadrant * pi/2 + (r + low), |r| <= pi/4. Three words of 2/pi, from the bit that weighs 4 quarter turns.
void p_reduce_turns(float size, out float r, out float low, out uint quadrant) {
    const uint two_over_pi[8] = uint[8](
        0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu
    );
    uint bits = floatBitsToUint(size);
    r = size;
    low = 0.0;
    quadrant = 0u;
    if (bits < 0x3f490fdbu) {
        return;
    }
    uint m = (bits & 0x7fffffu) | 0x800000u;
    uint start = (bits >> 23) - 120u;
    uint first = start >> 5;
    uint offset = start & 31u;
    uint w1 = two_over_pi[first + 1u];
    uint w2 = two_over_pi[first + 2u];
    uint p0, p1, p2, carry1, carry2;
    umulExtended(m, p_funnel(w2, two_over_pi[first + 3u], offset), carry2, p2);
    umulExtended(m, p_funnel(w1, w2, offset), carry1, p1);
    p1 += carry2;
    p0 = m * p_funnel(two_over_pi[first], w1, offset) + carry1 + (p1 < carry2 ? 1u : 0u);
    uint f0 = p_funnel(p0, p1, 2u);
    uint f1 = p_funnel(p1, p2, 2u);
    uint f2 = p2 << 2;
    bool negative = (f0 >> 31) != 0u;
    quadrant = (p0 >> 30) + (negative ? 1u : 0u);
    uint flip = negative ? 0xffffffffu : 0u;
    f0 ^= flip;
    f1 ^= flip;
    f2 ^= flip;
    // Three exact floats whose sum is the fraction; then times pi/2, in two parts.
    float a = float(f0 >> 10) * 2.384185791015625e-07;
    float b = float(((f0 & 0x3ffu) << 12) | (f1 >> 20)) * 5.684341886080802e-14;
    float c = float(((f1 & 0xfffffu) << 2) | (f2 >> 30)) * 1.3552527156068805e-20;
    float t = b + c;
    float s = a + t;
    float rest = (t - (s - a)) + (c - (t - b));
    float head = uintBitsToFloat(floatBitsToUint(s) & 0xfffff000u);
    float main_part = head * 1.5703125;
    float small = (s - head) * 1.5703125 + (s * 0.0004838267923332751 + rest * 1.5703125);
    r = main_part + small;
    low = small - (r - main_part);
    low = abs(low) < 8.470329472543003e-22 ? 0.0 : low;  // far below an ulp of the smallest r (2^-31)
    r = negative ? -r : r;
    low = negative ? -low : low;
}

float p_sine_near(float r, float low) {
    float z = r * r;
    float p = 2.7249895993008977e-06;
    p = p * z + -0.00019840087043121457;
    p = p * z + 0.008333331905305386;
    p = p * z + -0.1666666716337204;
    return r + ((r * z) * p + low * (1.0 - 0.5 * z));
}

float p_cosine_near(float r, float low) {
    float z = r * r;
    float p = 2.454791683703661e-05;
    p = p * z + -0.001388830249197781;
    p = p * z + 0.0416666641831398;
    float square = 0.5 * z;
    float w = 1.0 - square;
    return w + (((1.0 - w) - square) + ((z * z) * p - r * low));
}

// sin (first = 0) or cos (first = 1) of size >= 0.
float p_wave(float size, uint first) {
    float r, low;
    uint quadrant;
    p_reduce_turns(size, r, low, quadrant);
    quadrant += first;
    float result = (quadrant & 1u) != 0u ? p_cosine_near(r, low) : p_sine_near(r, low);
    return (quadrant & 2u) != 0u ? -result : result;
}

float p_sin(float x) {
    uint bits = floatBitsToUint(canon(x));
    float size = uintBitsToFloat(bits & 0x7fffffffu);
    float result = p_wave(size < 0.0001220703125 ? 0.0 : size, 0u);
    result = size < 0.0001220703125 ? size : result;
    result = bits > 0x7fffffffu ? -result : result;
    return (bits & 0x7fffffffu) >= F32_INF ? uintBitsToFloat(F32_NAN) : canon(result);
}

float p_cos(float x) {
    uint bits = floatBitsToUint(canon(x)) & 0x7fffffffu;
    float size = uintBitsToFloat(bits);
    float result = p_wave(size < 0.0001220703125 ? 0.0 : size, 1u);
    return bits >= F32_INF ? uintBitsToFloat(F32_NAN) : canon(result);
}

#endif
