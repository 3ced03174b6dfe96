#define FAST 1
#define TM 8
#include "gemm_small.glsl"
