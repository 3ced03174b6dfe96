#define FAST 1
#define STRIDED
#define TM 8
#define TN 4
#include "_templates/linear/product/tail.glsl"
#define flushed flushed_products
#include "gemm_tile.glsl"
