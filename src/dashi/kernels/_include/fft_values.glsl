// What an invocation holds of the lines of a workgroup (fft_line.glsl), and butterflies of it, in their places.
#ifndef FFT_VALUES_GLSL
#define FFT_VALUES_GLSL
#include "fft_butterflies.glsl"

// Complex numbers as an invocation holds them in arrays. Drivers that keep arrays of words in registers may keep arrays
// of doubles in memory (NVIDIA's 580 does: it took twice the time), so those are held as words.
#if T_IS_F64
#define FftHeld uvec4

FftHeld fft_hold(P z) {
    return uvec4(unpackDouble2x32(z.x), unpackDouble2x32(z.y));
}

P fft_held(FftHeld words) {
    return P(packDouble2x32(words.xy), packDouble2x32(words.zw));
}
#else
#define FftHeld P
#define fft_hold(z) (z)
#define fft_held(z) (z)
#endif

FftHeld value[EACH];

void fft_twos(uint a, uint b) {
    P w = fft_held(value[a]);
    P x = fft_held(value[b]);
    fft_2(w, x);
    value[a] = fft_hold(w);
    value[b] = fft_hold(x);
}

void fft_fours(uint a, uint b, uint c, uint d) {
    P w = fft_held(value[a]);
    P x = fft_held(value[b]);
    P y = fft_held(value[c]);
    P z = fft_held(value[d]);
    fft_4(w, x, y, z);
    value[a] = fft_hold(w);
    value[b] = fft_hold(x);
    value[c] = fft_hold(y);
    value[d] = fft_hold(z);
}

void fft_eights(uint at) {
    P a = fft_held(value[at]);
    P b = fft_held(value[at + 1u]);
    P c = fft_held(value[at + 2u]);
    P d = fft_held(value[at + 3u]);
    P e = fft_held(value[at + 4u]);
    P f = fft_held(value[at + 5u]);
    P g = fft_held(value[at + 6u]);
    P h = fft_held(value[at + 7u]);
    fft_8(a, b, c, d, e, f, g, h);
    value[at] = fft_hold(a);
    value[at + 1u] = fft_hold(b);
    value[at + 2u] = fft_hold(c);
    value[at + 3u] = fft_hold(d);
    value[at + 4u] = fft_hold(e);
    value[at + 5u] = fft_hold(f);
    value[at + 6u] = fft_hold(g);
    value[at + 7u] = fft_hold(h);
}

void fft_times(uint e, P factor) {
    value[e] = fft_hold(fft_mul(fft_held(value[e]), factor));
}

void fft_swap(uint a, uint b) {
    FftHeld z = value[a];
    value[a] = value[b];
    value[b] = z;
}

// Four times four: columns, factors exp(-2 pi i t k / 16), rows, which are then columns.
void fft_sixteens(uint at) {
    [[unroll]] for (uint t = at; t < at + 4u; t++) {
        fft_fours(t, t + 4u, t + 8u, t + 12u);
    }
    fft_times(at + 5u, P(COS_16, -SIN_16));
    value[at + 6u] = fft_hold(fft_eighth(fft_held(value[at + 6u])));
    fft_times(at + 7u, P(SIN_16, -COS_16));
    value[at + 9u] = fft_hold(fft_eighth(fft_held(value[at + 9u])));
    value[at + 10u] = fft_hold(fft_turned(fft_held(value[at + 10u])));
    value[at + 11u] = fft_hold(fft_turned(fft_eighth(fft_held(value[at + 11u]))));
    fft_times(at + 13u, P(SIN_16, -COS_16));
    value[at + 14u] = fft_hold(fft_turned(fft_eighth(fft_held(value[at + 14u]))));
    fft_times(at + 15u, P(-COS_16, SIN_16));
    [[unroll]] for (uint t = at; t < at + 16u; t += 4u) {
        fft_fours(t, t + 1u, t + 2u, t + 3u);
    }
    fft_swap(at + 1u, at + 4u);
    fft_swap(at + 2u, at + 8u);
    fft_swap(at + 3u, at + 12u);
    fft_swap(at + 6u, at + 9u);
    fft_swap(at + 7u, at + 13u);
    fft_swap(at + 11u, at + 14u);
}

#ifdef FFT_MIXED
void fft_odd(uint radix, uint at) {
    P a = fft_held(value[at]);
    P b = fft_held(value[at + 1u]);
    P c = fft_held(value[at + 2u]);
    if (radix == 3u) {
        fft_3(a, b, c);
    } else {
        P d = fft_held(value[at + 3u]);
        P e = fft_held(value[at + 4u]);
        if (radix == 5u) {
            fft_5(a, b, c, d, e);
        } else {
            P f = fft_held(value[at + 5u]);
            P g = fft_held(value[at + 6u]);
            fft_7(a, b, c, d, e, f, g);
            value[at + 5u] = fft_hold(f);
            value[at + 6u] = fft_hold(g);
        }
        value[at + 3u] = fft_hold(d);
        value[at + 4u] = fft_hold(e);
    }
    value[at] = fft_hold(a);
    value[at + 1u] = fft_hold(b);
    value[at + 2u] = fft_hold(c);
}
#endif

void fft_butterfly(uint radix, uint at) {
    if (radix == 2u) {
        fft_twos(at, at + 1u);
    } else if (radix == 4u) {
        fft_fours(at, at + 1u, at + 2u, at + 3u);
    } else if (radix == 8u) {
        fft_eights(at);
    } else if (radix == 16u) {
        fft_sixteens(at);
#ifdef FFT_MIXED
    } else if (radix == 3u || radix == 5u || radix == 7u) {
        fft_odd(radix, at);
#endif
    }
}

#endif
