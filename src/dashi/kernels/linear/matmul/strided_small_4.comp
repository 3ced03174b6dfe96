#define FAST 0
#define STRIDED
#define TM 4
#include "no_tail.glsl"
#include "gemm_small.glsl"
