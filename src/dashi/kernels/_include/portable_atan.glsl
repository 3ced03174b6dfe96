// atan and atan2 of the portable maths, for shaders that ask for it by name.
#ifndef PORTABLE_ATAN_GLSL
#define PORTABLE_ATAN_GLSL
#include "portable.glsl"
#include "portable_f32_atan.glsl"
#if USE_F64
#include "portable_f64_atan.glsl"
#endif
#endif
