// Real lines of an even number, 2 N, of values by complex transforms of their N pairs of neighbours (2 i, 2 i + 1),
// from which the transforms of the even and the odd values are taken apart and joined; and the way back. `turns`
// holds, after the factors of the complex transform, exp(-2 pi i k / (2 N)) for k < N.
#ifndef FFT_PAIRS_GLSL
#define FFT_PAIRS_GLSL
#include "fft_line.glsl"

const uint FFT_HALF = N / 2u + 1u;
const uint FFT_PAIRS = (LINES * FFT_HALF + LANES - 1u) / LANES;

FftHeld fft_low[FFT_PAIRS];
FftHeld fft_high[FFT_PAIRS];

void fft_take(inout P z, uint place, uint line, uint part, uint window) {
    if (WINDOWS == 1u || place / FFT_WINDOW == window) {
        uint from = line * SPAN + place - window * FFT_WINDOW;
        if (PARTS == 1u) {
            z = fft_whole[from];
        } else if (part == 0u) {
            z.x = fft_plane[from];
        } else {
            z.y = fft_plane[from];
        }
    }
}

uint fft_pair(uint u) {
    return u * LANES + gl_LocalInvocationIndex;
}

// After fft_transform() of pairs of neighbours: twice the modes k and N - k of the real lines in fft_low[u] and
// fft_high[u], k = fft_pair(u) % FFT_HALF of line fft_pair(u) / FFT_HALF, where that is below LINES. For INNER = 1.
void fft_take_apart() {
    [[unroll]] for (uint part = 0u; part < PARTS; part++) {
        [[unroll]] for (uint window = 0u; window < WINDOWS; window++) {
            barrier();
            fft_write(part, window, N / LAST, LAST);
            barrier();
            [[unroll]] for (uint u = 0u; u < FFT_PAIRS; u++) {
                uint k = fft_pair(u) % FFT_HALF;
                uint line = fft_pair(u) / FFT_HALF;
                if (line < LINES) {
                    P low = fft_held(fft_low[u]);
                    fft_take(low, k, line, part, window);
                    fft_low[u] = fft_hold(low);
                    P high = fft_held(fft_high[u]);
                    fft_take(high, k == 0u ? 0u : N - k, line, part, window);
                    fft_high[u] = fft_hold(high);
                }
            }
        }
    }
    [[unroll]] for (uint u = 0u; u < FFT_PAIRS; u++) {
        P a = fft_held(fft_low[u]);
        P b = fft_held(fft_high[u]);
        P even = P(a.x + b.x, a.y - b.y);
        P odd = fft_mul(P(a.y + b.y, b.x - a.x), turns[N + fft_pair(u) % FFT_HALF]);
        P less = even - odd;
        fft_low[u] = fft_hold(even + odd);
        fft_high[u] = fft_hold(P(less.x, -less.y));
    }
}

// What the inverse complex transform makes values 2 i and 2 i + 1 of a real line of, from its modes i and N - i. The
// imaginary parts of modes 0 and N are not looked at.
P fft_together(P a, P b, uint i) {
    T up = i == 0u ? T(0) : a.y;
    T down = i == 0u ? T(0) : b.y;
    P w = turns[N + i];
    P odd = fft_mul(P(a.x - b.x, up + down), P(w.x, -w.y));
    return P(a.x + b.x - odd.y, up - down + odd.x);
}

#endif
