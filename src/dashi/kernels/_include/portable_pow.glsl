// pow of the portable maths, for shaders that ask for it by name.
#ifndef PORTABLE_POW_GLSL
#define PORTABLE_POW_GLSL
#include "portable.glsl"
#include "portable_f32_pow.glsl"
#if USE_F64
#include "portable_f64_pow.glsl"
#endif
#endif
