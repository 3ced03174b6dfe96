#include "fft_plain.glsl"
