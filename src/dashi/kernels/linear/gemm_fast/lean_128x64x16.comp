#define TN 4
#if T_IS_F64
#define STEP 8u
#else
#define STEP 16u
#endif
#include "lean.glsl"
