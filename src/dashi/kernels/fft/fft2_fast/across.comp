// Rows of the source, several side by side, to tiles.
#include "fft_rows_across.glsl"
