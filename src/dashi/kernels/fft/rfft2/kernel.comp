#include "fft_rows_forward.glsl"
