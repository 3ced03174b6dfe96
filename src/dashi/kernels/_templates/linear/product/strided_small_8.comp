#define FAST 0
#define STRIDED
#define TM 8
#include "tail.glsl"
#define flushed flushed_products
#include "gemm_small.glsl"
