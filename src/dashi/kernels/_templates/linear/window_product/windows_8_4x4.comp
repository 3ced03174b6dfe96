#define FAST 0
#define STRIDED
#define WINDOWS
#define NARROW
#define TM 4
#define TN 4
#include "_templates/linear/product/tail.glsl"
#define flushed flushed_products
#include "gemm_tile.glsl"
