#include "fft_rows_inverse.glsl"
