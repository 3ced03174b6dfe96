#define FAST 0
#define STRIDED
#define NARROW
#define TM 4
#define TN 4
#include "no_tail.glsl"
#include "gemm_tile.glsl"
