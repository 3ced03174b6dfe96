#define FAST 0
#define STRIDED
#define TM 4
#define STEP 16u
#include "tail.glsl"
#define flushed flushed_products
#include "gemm_few.glsl"
