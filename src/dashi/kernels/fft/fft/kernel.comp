// Transforms along the middle axis of an array (lines, N, columns) of complex numbers.
#include "fft_plain.glsl"
