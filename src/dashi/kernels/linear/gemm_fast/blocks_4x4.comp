#define FAST 1
#define TM 4
#define TN 4
#include "gemm_tile.glsl"
