#if T_IS_F64
#define TN 4  // a double takes two registers
#define STEP 8u
#else
#define TN 8
#define STEP 16u
#endif
#include "lean.glsl"
