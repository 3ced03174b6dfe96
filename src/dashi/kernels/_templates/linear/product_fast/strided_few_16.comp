#define FAST 1
#define STRIDED
#define TM 16
#define STEP 8u
#include "_templates/linear/product/tail.glsl"
#define flushed flushed_products
#include "gemm_few.glsl"
