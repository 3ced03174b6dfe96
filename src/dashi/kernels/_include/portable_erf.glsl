// erf of the portable maths, for shaders that ask for it by name.
#ifndef PORTABLE_ERF_GLSL
#define PORTABLE_ERF_GLSL
#include "portable.glsl"
#include "portable_f32_erf.glsl"
#if USE_F64
#include "portable_f64_erf.glsl"
#endif
#endif
