#define FAST 0
#define TM 16
#define STEP 8u
#include "gemm_few.glsl"
