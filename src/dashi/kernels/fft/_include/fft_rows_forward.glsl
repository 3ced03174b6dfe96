// Modes of real lines, an even number of values each, as the source holds them.
#include "fft_tiles.glsl"

P fft_load(uint outer, uint inner, uint j, uint hop) {
    return source[outer * N + j + hop];
}

void fft_store(uint outer, uint inner, uint j, uint hop, P z) {
    uint i = j + hop;
    result[(TILED & 2u) != 0u ? fft_tile(outer, 0u, i, 0u, N + 1u) : outer * (N + 1u) + i] = z;
}
