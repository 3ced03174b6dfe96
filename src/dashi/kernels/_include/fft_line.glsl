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
//
// Transforms of fields (FFT_FIELD) may be shared out between two passes. A pass over rows does the first stage of the
// columns too if AHEAD is its radix: a workgroup then holds as many rows, STEP rows apart, and LANES is N / LAST. It
// leaves the legs of that stage side by side. The pass over columns goes on with leg fft_leg of transforms of
// N * BEGUN values.
#ifndef FFT_LINE_GLSL
#define FFT_LINE_GLSL
#include "fft_values.glsl"

const uint FFT_POINTS = N * LINES * INNER;
const uint FFT_LINE = N * INNER;
const uint FFT_WINDOW = (FFT_LINE + WINDOWS - 1u) / WINDOWS;

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

// What a stage leaves for the next: where nothing is exchanged in pieces, leg t of butterfly j lies at
// t * fft_pitch + j. Hops from leg to leg are then known to the compiler, to those who write and to those who read.
// Legs are set off by as much as neighbours read at once, so that invocations read from different banks.
bool fft_pitched(uint size, uint radix) {
    return WINDOWS == 1u && size * radix < N;
}

uint fft_pitch(uint size, uint radix) {
    uint run = size * INNER;
    return FFT_LINE / radix + (run < FFT_BANKS ? run : 0u);
}

// Otherwise they lie in order: the gap before a place of a line. Butterflies write blocks; every block (or all banks)
// is set off by as much as neighbours write at once, so that invocations write to different banks.
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
                uint to = at.line * SPAN;
                if (fft_pitched(size, radix)) {
                    to += at.j * INNER + at.inner + t * fft_pitch(size, radix);
                } else {
                    to += start + t * run + fft_gap(level ? start : start + t * run, block, run);
                }
                P z = fft_held(value[u * radix + t]);
                if (PARTS == 1u) {
                    fft_whole[to] = z;
                } else {
                    fft_plane[to] = part == 0u ? z.x : z.y;
                }
            }
        }
    }
}

// Used only where windows are, since registers that are still to be written may not be read into.
FftHeld fft_next[EACH];

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
                uint from = at.line * SPAN;
                if (fft_pitched(size, before)) {
                    from += at.j / size % before * fft_pitch(size, before);
                    from += (at.j / (size * before) * size + at.j % size) * INNER + at.inner + t * stride / before;
                } else {
                    uint hop = t * stride - window * FFT_WINDOW;
                    uint gap = fft_gap(base + (level ? 0u : hop), block, run) + (level ? fft_gap(hop, block, run) : 0u);
                    from += base + hop + gap;
                }
                if (WINDOWS > 1u) {
                    if (PARTS == 1u) {
                        fft_next[u * radix + t] = fft_hold(fft_whole[from]);
                    } else if (part == 0u) {
                        fft_next[u * radix + t] = fft_hold(P(fft_plane[from], fft_held(fft_next[u * radix + t]).y));
                    } else {
                        fft_next[u * radix + t] = fft_hold(P(fft_held(fft_next[u * radix + t]).x, fft_plane[from]));
                    }
                } else if (PARTS == 1u) {
                    value[u * radix + t] = fft_hold(fft_whole[from]);
                } else if (part == 0u) {
                    value[u * radix + t] = fft_hold(P(fft_plane[from], fft_held(value[u * radix + t]).y));
                } else {
                    value[u * radix + t] = fft_hold(P(fft_held(value[u * radix + t]).x, fft_plane[from]));
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

// Factor k of leg t of a stage that joins transforms of `joined` values.
#ifdef FFT_FIELD
uint fft_leg;
#define fft_turn(t, joined, k) turns[((t) * (joined) + (k)) * BEGUN + fft_leg]

// Those of the second stage, for the whole workgroup, if HOLD is 1.
shared P fft_shared_turns[HOLD == 1u ? R0 * R1 : 1u];
#else
#define fft_turn(t, joined, k) turns[(t) * (joined) + (k)]
#endif

// The factors of the second and the third stage, if FETCH is 1.
FftHeld fft_second[EACH];
FftHeld fft_third[EACH];

void fft_fetch(uint size, uint before, uint radix) {
    uint joined = size * before;
    [[unroll]] for (uint u = 0u; u < fft_units(radix); u++) {
        FftPlace at = fft_place(u, radix);
        [[unroll]] for (uint t = 1u; t < radix; t++) {
            if (at.there && size == 1u) {
                fft_second[u * radix + t] = fft_hold(fft_turn(t, joined, at.j % joined));
            } else if (at.there) {
                fft_third[u * radix + t] = fft_hold(fft_turn(t, joined, at.j % joined));
            }
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
                uint e = u * radix + t;
                if (FETCH == 1u && size == 1u) {
                    fft_times(e, fft_held(fft_second[e]));
                } else if (FETCH == 1u && size == R0) {
                    fft_times(e, fft_held(fft_third[e]));
#ifdef FFT_FIELD
                } else if (HOLD == 1u && size == 1u) {
                    fft_times(e, fft_shared_turns[t * joined + k]);
#endif
                } else {
                    fft_times(e, fft_turn(t, joined, k));
                }
            }
        }
        fft_butterfly(radix, u * radix);
    }
}

// All stages. Values are flushed first, unless they come from another pass (RAW & 1). Factors that are fetched first
// are on their way together with the values: after a barrier between dispatches they come from far.
void fft_transform() {
    if (FETCH == 1u && R1 > 1u) {
        fft_fetch(1u, R0, R1);
    }
    if (FETCH == 1u && R2 > 1u) {
        fft_fetch(R0, R1, R2);
    }
#ifdef FFT_FIELD
    [[unroll]] for (uint first = 0u; first < HOLD * R0 * R1; first += LANES) {
        uint place = first + gl_LocalInvocationIndex;
        if (R0 * R1 % LANES == 0u || place < R0 * R1) {
            fft_shared_turns[place] = fft_turn(1u, 0u, place);
        }
    }
    [[unroll]] for (uint e = 0u; BEGUN > 1u && e < fft_units(R0) * R0; e++) {
        if (e % R0 > 0u) {
            fft_times(e, fft_turn(e % R0, 1u, 0u));
        }
    }
#endif
    [[unroll]] for (uint u = 0u; u < fft_units(R0); u++) {
        if ((RAW & 1u) == 0u) {
            [[unroll]] for (uint e = u * R0; e < (u + 1u) * R0; e++) {
                value[e] = fft_hold(fft_flushed(fft_held(value[e])));
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

#ifdef FFT_FIELD
// After a transform of AHEAD lines, a leg of each on every invocation: the columns' first stage.
void fft_ahead() {
    [[unroll]] for (uint t = 0u; t < LAST; t++) {
        if (AHEAD == 2u) {
            fft_twos(t, LAST + t);
        } else if (AHEAD == 4u) {
            fft_fours(t, LAST + t, 2u * LAST + t, 3u * LAST + t);
        }
    }
}
#endif

// What is stored of a value: times `scale`, if SCALED, and canonical, unless it is for another pass of the transform
// (RAW & 2): sums of canonical values are never subnormal, so that every device keeps them.
T fft_stored(T v) {
    T result = SCALED == 1u ? mul(v, scale) : v;
    return (RAW & 2u) != 0u ? result : canon(result);
}

P fft_stored(P z) {
    return P(fft_stored(z.x), fft_stored(z.y));
}

// After a transform: its values as they are stored.
void fft_settle() {
    if ((RAW & 2u) == 0u || SCALED == 1u) {
        [[unroll]] for (uint e = 0u; e < fft_units(LAST) * LAST; e++) {
            value[e] = fft_hold(fft_stored(fft_held(value[e])));
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
