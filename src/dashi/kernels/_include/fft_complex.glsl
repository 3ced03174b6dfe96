// Complex transforms, forward, or inverse if SWAP is 1 (real and imaginary parts trade places before and after).
// What is loaded and stored is up to the kernel:
//     P fft_load(uint outer, uint inner, uint j, uint hop)             element j + hop of a transform
//     void fft_store(uint outer, uint inner, uint j, uint hop, P z)    takes element j + hop, as it is stored
// A transform is named by its line `outer` and, within that, its column `inner` (0 for rows). `hop` is the same for
// all invocations and known to the compiler: addresses are best written as a sum of what depends on it and what does
// not.
#include "fft_line.glsl"

P fft_load(uint outer, uint inner, uint j, uint hop);
void fft_store(uint outer, uint inner, uint j, uint hop, P z);

void main() {
    uint tiles = (COLUMNS + INNER - 1u) / INNER;
    uint group = gl_WorkGroupID.y * across + gl_WorkGroupID.x;
    uint first_inner = group % tiles * INNER;
    uint first_outer = group / tiles * LINES;
    [[unroll]] for (uint u = 0u; u < fft_units(R0); u++) {
        FftPlace at = fft_place(u, R0);
        uint outer = first_outer + at.line;
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
    fft_settle();
    [[unroll]] for (uint u = 0u; u < fft_units(LAST); u++) {
        FftPlace at = fft_place(u, LAST);
        uint outer = first_outer + at.line;
        uint inner = first_inner + at.inner;
        if (at.there && (WHOLE == 1u || (outer < lines && inner < COLUMNS))) {
            [[unroll]] for (uint t = 0u; t < LAST; t++) {
                P z = fft_held(value[u * LAST + t]);
                fft_store(outer, inner, at.j, t * (N / LAST), SWAP == 1u ? z.yx : z);
            }
        }
    }
}
