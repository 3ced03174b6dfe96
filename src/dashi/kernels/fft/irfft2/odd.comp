#include "fft_rows_inverse_odd.glsl"
