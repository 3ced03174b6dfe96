// Where values between two passes of one transform may lie (TILED: 1 for what is loaded, 2 for what is stored): in
// tiles of TILE_ROWS by TILE_COLUMNS, longer than what a workgroup needs of one row of the array: memory is read in
// long pieces.
#ifndef FFT_TILES_GLSL
#define FFT_TILES_GLSL

uint fft_tile_at(uint row, uint column, uint across) {
    uint tile = row / TILE_ROWS * across + column / TILE_COLUMNS;
    return (tile * TILE_ROWS + row % TILE_ROWS) * TILE_COLUMNS + column % TILE_COLUMNS;
}

// The place of row `row + row_hop` and column `column + column_hop` of an array of this width. Hops over whole tiles
// are added in the end, where the compiler knows them.
uint fft_tile(uint row, uint row_hop, uint column, uint column_hop, uint width) {
    uint across = (width + TILE_COLUMNS - 1u) / TILE_COLUMNS;
    if (row_hop % TILE_ROWS == 0u && column_hop % TILE_COLUMNS == 0u) {
        return fft_tile_at(row, column, across) + row_hop * across * TILE_COLUMNS + column_hop * TILE_ROWS;
    }
    return fft_tile_at(row + row_hop, column + column_hop, across);
}

#endif
