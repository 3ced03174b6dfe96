#include "fft_rows_forward_odd.glsl"
