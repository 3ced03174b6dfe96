// Modes of real lines of an odd number of values: the first half of their complex transform.
#include "fft_tiles.glsl"

P fft_load(uint outer, uint inner, uint j, uint hop) {
    return P(source[outer * N + j + hop], T(0));
}

void fft_store(uint outer, uint inner, uint j, uint hop, P z) {
    uint i = j + hop;
    if (i <= N / 2u) {
        uint modes = N / 2u + 1u;
        result[(TILED & 2u) != 0u ? fft_tile(outer, 0u, i, 0u, modes) : outer * modes + i] = z;
    }
}
