#define FAST 0
#define STRIDED
#define TM 8
#define STEP 16u
#include "no_tail.glsl"
#include "gemm_few.glsl"
