#define FAST 0
#define TM 8
#define TN 8
#include "gemm_tile.glsl"
