#define FAST 0
#define STRIDED
#define TM 16
#define STEP 8u
#include "no_tail.glsl"
#include "gemm_few.glsl"
