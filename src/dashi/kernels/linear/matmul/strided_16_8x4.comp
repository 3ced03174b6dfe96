#define FAST 0
#define STRIDED
#define TM 8
#define TN 4
#include "no_tail.glsl"
#include "gemm_tile.glsl"
