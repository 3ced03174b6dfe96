#define FAST 0
#define TM 8
#define STEP 16u
#include "gemm_few.glsl"
