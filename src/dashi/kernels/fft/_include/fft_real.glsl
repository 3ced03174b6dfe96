// Real lines of an even number, 2 N, of values to their modes: see fft_pairs.glsl.
//     P fft_load(uint outer, uint inner, uint j, uint hop)             values 2 i and 2 i + 1 of a line, i = j + hop
//     void fft_store(uint outer, uint inner, uint j, uint hop, P z)    takes twice the mode i, 0 <= i <= N, likewise
#include "fft_pairs.glsl"

P fft_load(uint outer, uint inner, uint j, uint hop);
void fft_store(uint outer, uint inner, uint j, uint hop, P z);

void main() {
    uint group = gl_WorkGroupID.y * across + gl_WorkGroupID.x;
    uint first = group * LINES;
    [[unroll]] for (uint u = 0u; u < fft_units(R0); u++) {
        FftPlace at = fft_place(u, R0);
        [[unroll]] for (uint t = 0u; t < R0; t++) {
            P z = P(0);
            if (at.there && (WHOLE == 1u || first + at.line < lines)) {
                z = fft_load(first + at.line, 0u, at.j, t * (N / R0));
            }
            value[u * R0 + t] = fft_hold(z);
        }
    }
    fft_transform();
    fft_take_apart();
    [[unroll]] for (uint u = 0u; u < FFT_PAIRS; u++) {
        uint k = fft_pair(u) % FFT_HALF;
        uint line = fft_pair(u) / FFT_HALF;
        if (line < LINES && first + line < lines) {
            fft_store(first + line, 0u, k, 0u, fft_stored(fft_held(fft_low[u])));
            if (k != N - k) {
                fft_store(first + line, 0u, N - k, 0u, fft_stored(fft_held(fft_high[u])));
            }
        }
    }
}
