// Fourier transforms of whole lines in one workgroup, values in registers, exchanged through shared memory.
//
// A workgroup holds LINES lines, one after the other, each of INNER neighbouring transforms of N values that lie
// interleaved (columns of an array; 1 for its rows). The Stockham stages have the radices R0, R1, ..., LAST; how
// values lie on invocations changes no bit. Invocation `lane` holds in value[] the inputs of a stage's butterflies
// lane, lane + LANES, ..., those of one butterfly one after the other: value[u * radix + t] belongs to the butterfly
// fft_place(u, radix). Before fft_transform() that is the element j + t N / R0 of its line, and after it the element
// j + t N / LAST.
//
// Without FFT_MIXED there are powers of two only, of up to three stages: less to compile.
//
// Shared memory is exchanged in WINDOWS pieces, and, if PARTS is 2, real parts before imaginary ones, where it is
// short.
#ifndef FFT_LINE_GLSL
#define FFT_LINE_GLSL
#include "fft_butterflies.glsl"

const uint FFT_POINTS = N * LINES * INNER;
const uint FFT_LINE = N * INNER;
const uint FFT_WINDOW = (FFT_LINE + WINDOWS - 1u) / WINDOWS;

P value[EACH];
// Real parts and then imaginary ones, or, if PARTS is 1, both.
shared T fft_plane[PARTS == 1u ? 1u : LINES * SPAN];
shared P fft_whole[PARTS == 1u ? LINES * SPAN : 1u];

// Values that lie side by side on all banks of shared memory.
const uint FFT_BANKS = (PARTS == 1u ? 16u : 32u) >> T_IS_F64;

// Which line, which of its interleaved transforms, and which butterfly of it; whether there is one.
struct FftPlace {
    uint line;
    uint inner;
    uint j;
    bool there;
};

FftPlace fft_place(uint u, uint radix) {
    uint butterfly = u * LANES + gl_LocalInvocationIndex;
    uint rest = butterfly / INNER;
    uint each = N / radix;
    bool there = FFT_POINTS / radix % LANES == 0u || butterfly < FFT_POINTS / radix;
    return FftPlace(rest / each, butterfly % INNER, rest % each, there);
}

uint fft_units(uint radix) {
    return (FFT_POINTS / radix + LANES - 1u) / LANES;
}

void fft_butterfly(uint radix, uint at) {
#ifdef FFT_MIXED
    if (radix == 3u) {
        fft_3(value[at], value[at + 1u], value[at + 2u]);
        return;
    }
    if (radix == 5u) {
        fft_5(value[at], value[at + 1u], value[at + 2u], value[at + 3u], value[at + 4u]);
        return;
    }
    if (radix == 7u) {
        fft_7(value[at], value[at + 1u], value[at + 2u], value[at + 3u], value[at + 4u], value[at + 5u],
              value[at + 6u]);
        return;
    }
#endif
    if (radix == 2u) {
        fft_2(value[at], value[at + 1u]);
    } else if (radix == 4u) {
        fft_4(value[at], value[at + 1u], value[at + 2u], value[at + 3u]);
    } else if (radix == 8u) {
        fft_8(value[at], value[at + 1u], value[at + 2u], value[at + 3u], value[at + 4u], value[at + 5u],
              value[at + 6u], value[at + 7u]);
    } else if (radix == 16u) {
        // Four times four: columns, factors exp(-2 pi i t k / 16), rows.
        fft_4(value[at], value[at + 4u], value[at + 8u], value[at + 12u]);
        fft_4(value[at + 1u], value[at + 5u], value[at + 9u], value[at + 13u]);
        fft_4(value[at + 2u], value[at + 6u], value[at + 10u], value[at + 14u]);
        fft_4(value[at + 3u], value[at + 7u], value[at + 11u], value[at + 15u]);
        P a = fft_mul(value[at + 5u], P(COS_16, -SIN_16));
        P b = fft_eighth(value[at + 6u]);
        P c = fft_mul(value[at + 7u], P(SIN_16, -COS_16));
        P d = fft_eighth(value[at + 9u]);
        P e = fft_turned(value[at + 10u]);
        P f = fft_turned(fft_eighth(value[at + 11u]));
        P g = fft_mul(value[at + 13u], P(SIN_16, -COS_16));
        P h = fft_turned(fft_eighth(value[at + 14u]));
        P i = fft_mul(value[at + 15u], P(-COS_16, SIN_16));
        P four = value[at + 4u];
        P eight = value[at + 8u];
        P twelve = value[at + 12u];
        fft_4(value[at], value[at + 1u], value[at + 2u], value[at + 3u]);
        fft_4(four, a, b, c);
        fft_4(eight, d, e, f);
        fft_4(twelve, g, h, i);
        value[at + 4u] = value[at + 1u];
        value[at + 8u] = value[at + 2u];
        value[at + 12u] = value[at + 3u];
        value[at + 1u] = four;
        value[at + 5u] = a;
        value[at + 9u] = b;
        value[at + 13u] = c;
        value[at + 2u] = eight;
        value[at + 6u] = d;
        value[at + 10u] = e;
        value[at + 14u] = f;
        value[at + 3u] = twelve;
        value[at + 7u] = g;
        value[at + 11u] = h;
        value[at + 15u] = i;
    }
}

// The gap before a place of a line in shared memory. Butterflies write blocks; every block (or all banks) is
// set off by as much as neighbours write at once, so that invocations write to different banks.
uint fft_gap(uint place, uint block, uint run) {
    uint apart = max(FFT_BANKS, block);
    return run < FFT_BANKS && run * 4u <= apart ? place / apart * run : 0u;
}

// What a stage of this radix, which joined transforms of `size` values, leaves: from registers to shared memory.
void fft_write(uint part, uint window, uint size, uint radix) {
    uint run = size * INNER;
    uint block = run * radix;
    bool whole = FFT_WINDOW % block == 0u;
    bool level = whole && (FFT_BANKS % block == 0u || block % FFT_BANKS == 0u);  // no gap within a butterfly
    [[unroll]] for (uint u = 0u; u < fft_units(radix); u++) {
        FftPlace at = fft_place(u, radix);
        uint base = (at.j / size * (size * radix) + at.j % size) * INNER + at.inner;
        uint start = base - window * FFT_WINDOW;
        [[unroll]] for (uint t = 0u; t < radix; t++) {
            uint asked = whole ? base : base + t * run;
            if (at.there && (WINDOWS == 1u || asked / FFT_WINDOW == window)) {
                uint gap = fft_gap(level ? start : start + t * run, block, run);
                uint to = at.line * SPAN + start + t * run + gap;
                if (PARTS == 1u) {
                    fft_whole[to] = value[u * radix + t];
                } else {
                    fft_plane[to] = part == 0u ? value[u * radix + t].x : value[u * radix + t].y;
                }
            }
        }
    }
}

P fft_next[EACH];  // used only where windows are, since registers that are still to be written may not be read into

void fft_read(uint part, uint window, uint size, uint before, uint radix) {
    uint run = size * INNER;
    uint block = run * before;
    uint stride = N / radix * INNER;
    bool whole = FFT_WINDOW % stride == 0u;
    bool level = whole && stride % max(FFT_BANKS, block) == 0u;
    [[unroll]] for (uint u = 0u; u < fft_units(radix); u++) {
        FftPlace at = fft_place(u, radix);
        uint base = at.j * INNER + at.inner;
        [[unroll]] for (uint t = 0u; t < radix; t++) {
            uint asked = whole ? t * stride : base + t * stride;
            if (at.there && (WINDOWS == 1u || asked / FFT_WINDOW == window)) {
                uint hop = t * stride - window * FFT_WINDOW;
                uint gap = fft_gap(base + (level ? 0u : hop), block, run) + (level ? fft_gap(hop, block, run) : 0u);
                uint from = at.line * SPAN + base + hop + gap;
                if (WINDOWS > 1u) {
                    if (PARTS == 1u) {
                        fft_next[u * radix + t] = fft_whole[from];
                    } else if (part == 0u) {
                        fft_next[u * radix + t].x = fft_plane[from];
                    } else {
                        fft_next[u * radix + t].y = fft_plane[from];
                    }
                } else if (PARTS == 1u) {
                    value[u * radix + t] = fft_whole[from];
                } else if (part == 0u) {
                    value[u * radix + t].x = fft_plane[from];
                } else {
                    value[u * radix + t].y = fft_plane[from];
                }
            }
        }
    }
}

// From where the stage before (its radix, and the size of what it joined) leaves values to where the next wants them.
void fft_exchange(uint size, uint before, uint radix) {
    [[unroll]] for (uint part = 0u; part < PARTS; part++) {
        [[unroll]] for (uint window = 0u; window < WINDOWS; window++) {
            barrier();
            fft_write(part, window, size, before);
            barrier();
            fft_read(part, window, size, before, radix);
        }
    }
    if (WINDOWS > 1u) {
        [[unroll]] for (uint e = 0u; e < EACH; e++) {
            value[e] = fft_next[e];
        }
    }
}

void fft_stage(uint size, uint before, uint radix) {
    fft_exchange(size, before, radix);
    uint joined = size * before;
    [[unroll]] for (uint u = 0u; u < fft_units(radix); u++) {
        FftPlace at = fft_place(u, radix);
        uint k = at.j % joined;
        [[unroll]] for (uint t = 1u; t < radix; t++) {
            if (at.there) {
                value[u * radix + t] = fft_mul(value[u * radix + t], turns[t * joined + k]);
            }
        }
        fft_butterfly(radix, u * radix);
    }
}

// All stages. Values are flushed first, unless they come from another pass (RAW & 1).
void fft_transform() {
    [[unroll]] for (uint u = 0u; u < fft_units(R0); u++) {
        if ((RAW & 1u) == 0u) {
            [[unroll]] for (uint e = u * R0; e < (u + 1u) * R0; e++) {
                value[e] = fft_flushed(value[e]);
            }
        }
        fft_butterfly(R0, u * R0);
    }
    if (R1 > 1u) {
        fft_stage(1u, R0, R1);
    }
    if (R2 > 1u) {
        fft_stage(R0, R1, R2);
    }
#ifdef FFT_MIXED
    if (R3 > 1u) {
        fft_stage(R0 * R1, R2, R3);
    }
    if (R4 > 1u) {
        fft_stage(R0 * R1 * R2, R3, R4);
    }
    if (R5 > 1u) {
        fft_stage(R0 * R1 * R2 * R3, R4, R5);
    }
    if (R6 > 1u) {
        fft_stage(R0 * R1 * R2 * R3 * R4, R5, R6);
    }
#endif
}

// What is stored of a value: times `scale`, if SCALED, and canonical, unless it is for another pass of the transform
// (RAW & 2): sums of canonical values are never subnormal, so that every device keeps them.
T fft_stored(T v) {
    T result = SCALED == 1u ? mul(v, scale) : v;
    return (RAW & 2u) != 0u ? result : canon(result);
}

// Whether that is the value itself, for all that the invocation holds.
bool fft_settled(uint radix) {
#ifdef FFT_FAST
    return SCALED == 0u;
#endif
    if (SCALED == 1u) {
        return false;
    }
    uint most = 0u;
    [[unroll]] for (uint e = 0u; e < fft_units(radix) * radix; e++) {
#if T_IS_F64
        most = max(most, (unpackDouble2x32(value[e].x).y << 1) - (F64_TINY_HIGH << 1));
        most = max(most, (unpackDouble2x32(value[e].y).y << 1) - (F64_TINY_HIGH << 1));
#else
        most = max(most, (floatBitsToUint(value[e].x) << 1) - (F32_TINY << 1));
        most = max(most, (floatBitsToUint(value[e].y) << 1) - (F32_TINY << 1));
#endif
    }
#if T_IS_F64
    return most < (F64_INF_HIGH << 1) - (F64_TINY_HIGH << 1);
#else
    return most < (F32_INF << 1) - (F32_TINY << 1);
#endif
}

// After a transform: its values as they are stored.
void fft_settle() {
    if ((RAW & 2u) != 0u && SCALED == 0u) {
        return;
    }
    if (!fft_settled(LAST)) {
        [[unroll]] for (uint e = 0u; e < fft_units(LAST) * LAST; e++) {
            value[e] = P(fft_stored(value[e].x), fft_stored(value[e].y));
        }
    }
}

// After a transform, for another one of its result: values go where a first stage wants them.
void fft_again() {
    if (R0 != LAST) {
        fft_exchange(N / LAST, LAST, R0);
    }
}

#endif
