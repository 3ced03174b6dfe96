// trunc, floor, ceil and round of the portable maths, for shaders that ask for it by name.
#ifndef PORTABLE_ROUND_GLSL
#define PORTABLE_ROUND_GLSL
#include "portable.glsl"
#include "portable_f32_round.glsl"
#if USE_F64
#include "portable_f64_round.glsl"
#endif
#endif
