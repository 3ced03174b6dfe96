// Complex transforms, forward, or inverse if SWAP is 1 (real and imaginary parts trade places before and after).
// What is loaded and stored is up to the kernel:
//     P fft_load(uint outer, uint inner, uint j, uint hop)             element j + hop of a transform
//     void fft_store(uint outer, uint inner, uint j, uint hop, P z)    takes element j + hop, as it is stored
// A transform is named by its line `outer` and, within that, its column `inner` (0 for rows). `hop` is the same for
// all invocations and known to the compiler: addresses are best written as a sum of what depends on it and what does
// not. After a pass with AHEAD, `outer` counts the lines that lie side by side as one.
#include "fft_line.glsl"

#ifndef FFT_FIELD
const uint STEP = 1u;
const uint AHEAD = 1u;
#endif

P fft_load(uint outer, uint inner, uint j, uint hop);
void fft_store(uint outer, uint inner, uint j, uint hop, P z);

void main() {
    uint tiles = (COLUMNS + INNER - 1u) / INNER;
    uint group = gl_WorkGroupID.y * across + gl_WorkGroupID.x;
    uint first_inner = group % tiles * INNER;
    uint first_outer = group / tiles / STEP * (STEP * LINES) + group / tiles % STEP;
#ifdef FFT_FIELD
    fft_leg = first_inner / (COLUMNS / BEGUN);
#endif
    [[unroll]] for (uint u = 0u; u < fft_units(R0); u++) {
        FftPlace at = fft_place(u, R0);
        uint outer = first_outer + at.line * STEP;
        uint inner = first_inner + at.inner;
        bool there = at.there && (WHOLE == 1u || (outer < lines && inner < COLUMNS));
        [[unroll]] for (uint t = 0u; t < R0; t++) {
            P z = P(0);
            if (there) {
                z = fft_load(outer, inner, at.j, t * (N / R0));
            }
            value[u * R0 + t] = fft_hold(SWAP == 1u ? z.yx : z);
        }
    }
    fft_transform();
#ifdef FFT_FIELD
    fft_ahead();
#endif
    fft_settle();
    [[unroll]] for (uint u = 0u; u < fft_units(LAST); u++) {
        FftPlace at = fft_place(u, LAST);
        uint outer = first_outer + at.line * STEP;
        uint inner = first_inner + at.inner;
        if (at.there && (WHOLE == 1u || (outer < lines && inner < COLUMNS))) {
            [[unroll]] for (uint t = 0u; t < LAST; t++) {
                P z = fft_held(value[u * LAST + t]);
                uint hop = t * (N / LAST);
                fft_store(AHEAD > 1u ? group : outer, inner, at.j, AHEAD > 1u ? u * N + hop : hop, SWAP == 1u ? z.yx : z);
            }
        }
    }
}
