// Rows of an array as interleaved transforms: neighbouring invocations hold the same element of neighbouring rows. What is
// stored in tiles then comes in longer pieces than one row's.
#include "fft_tiles.glsl"

P fft_load(uint outer, uint inner, uint j, uint hop) {
    return source[inner * N + j + hop];
}

void fft_store(uint outer, uint inner, uint j, uint hop, P z) {
    result[fft_tile(inner, 0u, j, hop, N)] = z;
}
