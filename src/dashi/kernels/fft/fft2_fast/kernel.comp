// Rows of the source, to tiles; then columns of the tiles.
#include "fft_plain.glsl"
