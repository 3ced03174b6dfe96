#define FAST 0
#define TM 8
#include "gemm_small.glsl"
