#define FAST 0
#define STRIDED
#define TM 8
#define TN 4
#include "tail.glsl"
#define flushed flushed_products
#include "gemm_tile.glsl"
