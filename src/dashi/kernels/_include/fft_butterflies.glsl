// Discrete Fourier transforms of 2 to 16 values, in place and in natural order. The order of every operation is part
// of the contract: the twin is kernels/fourier_reference.py. The constants are correctly rounded
// (kernels/fourier.py).
#ifndef FFT_BUTTERFLIES_GLSL
#define FFT_BUTTERFLIES_GLSL
#include "portable_f32.glsl"
#if USE_F64
#include "portable_f64.glsl"
#endif

#ifdef FFT_FAST
// The device class: values are what the device makes of them.
#define canon(v) (v)
#define mul(a, b) ((a) * (b))
#endif

#if T_IS_F64
const T COS_8 = 0.7071067811865476lf;
const T COS_16 = 0.9238795325112867lf;
const T SIN_16 = 0.3826834323650898lf;
const T SIN_3 = 0.8660254037844386lf;
const T COS_5 = 0.30901699437494745lf;
const T COS_5_2 = -0.8090169943749475lf;
const T SIN_5 = 0.9510565162951535lf;
const T SIN_5_2 = 0.5877852522924731lf;
const T COS_7 = 0.6234898018587335lf;
const T COS_7_2 = -0.2225209339563144lf;
const T COS_7_3 = -0.9009688679024191lf;
const T SIN_7 = 0.7818314824680298lf;
const T SIN_7_2 = 0.9749279121818236lf;
const T SIN_7_3 = 0.4338837391175581lf;
#else
const T COS_8 = 0.7071067690849304;
const T COS_16 = 0.9238795042037964;
const T SIN_16 = 0.3826834261417389;
const T SIN_3 = 0.8660253882408142;
const T COS_5 = 0.30901700258255005;
const T COS_5_2 = -0.80901700258255;
const T SIN_5 = 0.9510565400123596;
const T SIN_5_2 = 0.5877852439880371;
const T COS_7 = 0.6234897971153259;
const T COS_7_2 = -0.22252093255519867;
const T COS_7_3 = -0.9009688496589661;
const T SIN_7 = 0.7818315029144287;
const T SIN_7_2 = 0.9749279022216797;
const T SIN_7_3 = 0.4338837265968323;
#endif

// Values below 2^-95 (fp64: 2^-959) count as 0 within a transform: one test of a few bits, and above what the
// contract asks for.
T fft_flushed(T v) {
#ifdef FFT_FAST
    return v;
#elif T_IS_F64
    return (unpackDouble2x32(v).y & 0x7c000000u) == 0u ? T(0) : v;
#else
    return (floatBitsToUint(v) & 0x70000000u) == 0u ? T(0) : v;
#endif
}

P fft_flushed(P z) {
    return P(fft_flushed(z.x), fft_flushed(z.y));
}

// A complex product. It is enough to flush the sums: devices may differ in a product below 2^-126, but if the sum
// counts, the other product is above 2^-96, and what is below 2^-126 does not change how the sum is rounded.
P fft_mul(P z, P w) {
    return P(fft_flushed(z.x * w.x - z.y * w.y), fft_flushed(z.x * w.y + z.y * w.x));
}

P fft_scaled(P z, T factor) {
    return P(fft_flushed(z.x * factor), fft_flushed(z.y * factor));
}

// -i z
P fft_turned(P z) {
    return P(z.y, -z.x);
}

// exp(-i pi / 4) z
P fft_eighth(P z) {
    return P(fft_flushed((z.x + z.y) * COS_8), fft_flushed((z.y - z.x) * COS_8));
}

void fft_2(inout P a, inout P b) {
    P difference = a - b;
    a = a + b;
    b = difference;
}

void fft_3(inout P a, inout P b, inout P c) {
    P sum = b + c;
    P across = fft_turned(fft_scaled(b - c, SIN_3));
    P middle = a - fft_scaled(sum, T(0.5));
    a = a + sum;
    b = middle + across;
    c = middle - across;
}

void fft_4(inout P a, inout P b, inout P c, inout P d) {
    P even = a + c;
    P even_less = a - c;
    P odd = b + d;
    P odd_less = fft_turned(b - d);
    a = even + odd;
    b = even_less + odd_less;
    c = even - odd;
    d = even_less - odd_less;
}

void fft_5(inout P a, inout P b, inout P c, inout P d, inout P e) {
    P sum = b + e;
    P sum_2 = c + d;
    P less = b - e;
    P less_2 = c - d;
    P middle = (a + fft_scaled(sum, COS_5)) + fft_scaled(sum_2, COS_5_2);
    P middle_2 = (a + fft_scaled(sum, COS_5_2)) + fft_scaled(sum_2, COS_5);
    P across = fft_turned(fft_scaled(less, SIN_5) + fft_scaled(less_2, SIN_5_2));
    P across_2 = fft_turned(fft_scaled(less, SIN_5_2) - fft_scaled(less_2, SIN_5));
    a = (a + sum) + sum_2;
    b = middle + across;
    c = middle_2 + across_2;
    d = middle_2 - across_2;
    e = middle - across;
}

void fft_7(inout P a, inout P b, inout P c, inout P d, inout P e, inout P f, inout P g) {
    P sum = b + g;
    P sum_2 = c + f;
    P sum_3 = d + e;
    P less = b - g;
    P less_2 = c - f;
    P less_3 = d - e;
    P middle = ((a + fft_scaled(sum, COS_7)) + fft_scaled(sum_2, COS_7_2)) + fft_scaled(sum_3, COS_7_3);
    P middle_2 = ((a + fft_scaled(sum, COS_7_2)) + fft_scaled(sum_2, COS_7_3)) + fft_scaled(sum_3, COS_7);
    P middle_3 = ((a + fft_scaled(sum, COS_7_3)) + fft_scaled(sum_2, COS_7)) + fft_scaled(sum_3, COS_7_2);
    P across = fft_turned((fft_scaled(less, SIN_7) + fft_scaled(less_2, SIN_7_2)) + fft_scaled(less_3, SIN_7_3));
    P across_2 = fft_turned((fft_scaled(less, SIN_7_2) - fft_scaled(less_2, SIN_7_3)) - fft_scaled(less_3, SIN_7));
    P across_3 = fft_turned((fft_scaled(less, SIN_7_3) - fft_scaled(less_2, SIN_7)) + fft_scaled(less_3, SIN_7_2));
    a = ((a + sum) + sum_2) + sum_3;
    b = middle + across;
    c = middle_2 + across_2;
    d = middle_3 + across_3;
    e = middle_3 - across_3;
    f = middle_2 - across_2;
    g = middle - across;
}

void fft_8(inout P a, inout P b, inout P c, inout P d, inout P e, inout P f, inout P g, inout P h) {
    fft_4(a, c, e, g);
    fft_4(b, d, f, h);
    P odd = fft_eighth(d);
    P odd_2 = fft_turned(f);
    P odd_3 = fft_turned(fft_eighth(h));
    P even = c;
    P even_2 = e;
    P even_3 = g;
    e = a - b;
    a = a + b;
    b = even + odd;
    f = even - odd;
    c = even_2 + odd_2;
    g = even_2 - odd_2;
    d = even_3 + odd_3;
    h = even_3 - odd_3;
}

#endif
