// From the modes of real lines, N + 1 each, to the lines, an even number, 2 N, of values: see fft_pairs.glsl.
//     P fft_mode(uint outer, uint i)                         mode i of a line, flushed unless RAW & 1
//     void fft_store(uint outer, uint inner, uint j, uint hop, P z)    takes values 2 i and 2 i + 1, i = j + hop
#include "fft_pairs.glsl"
#include "fft_complex.glsl"

P fft_mode(uint outer, uint i);

P fft_load(uint outer, uint inner, uint j, uint hop) {
    uint i = j + hop;
    return fft_together(fft_mode(outer, i), fft_mode(outer, N - i), i);
}
