#define FAST 0
#define TM 4
#include "gemm_small.glsl"
