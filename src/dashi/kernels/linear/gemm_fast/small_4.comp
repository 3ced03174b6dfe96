#define FAST 1
#define TM 4
#include "gemm_small.glsl"
