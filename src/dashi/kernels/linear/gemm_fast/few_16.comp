#define FAST 1
#define TM 16
#define STEP 8u
#include "gemm_few.glsl"
