// Complex numbers as they lie in an array (lines, N, columns), and back, times `scale`. Tiles are read by columns,
// and written by rows (columns = 1).
#include "fft_tiles.glsl"

P fft_load(uint outer, uint inner, uint j, uint hop) {
    uint row = outer * N + j;
    return source[(TILED & 1u) != 0u ? fft_tile(row, hop, inner, 0u, COLUMNS) : row * COLUMNS + inner + hop * COLUMNS];
}

void fft_store(uint outer, uint inner, uint j, uint hop, P z) {
    uint row = outer * (N * AHEAD) + j;
    result[(TILED & 2u) != 0u ? fft_tile(outer, 0u, j, hop, N * AHEAD) : row * COLUMNS + inner + hop * COLUMNS] = z;
}
