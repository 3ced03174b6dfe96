#define FAST 0
#define TM 4
#define TN 4
#include "gemm_tile.glsl"
