#define FAST 0
#define STRIDED
#define TM 16
#define STEP 8u
#include "tail.glsl"
#define flushed flushed_products
#include "gemm_few.glsl"
