#define FAST 0
#define STRIDED
#define NARROW
#define TM 4
#define TN 4
#include "tail.glsl"
#define flushed flushed_products
#include "gemm_tile.glsl"
