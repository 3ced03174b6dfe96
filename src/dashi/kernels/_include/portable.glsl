// Portable maths: the same bits on every device and in NumPy (the twin is kernels/portable.py).
// Everything here uses only add, subtract, multiply, integer operations, compares and bit casts, so no driver has any
// freedom. No intermediate is ever subnormal: arguments are canonical, significands are scaled by integer operations.
#ifndef PORTABLE_GLSL
#define PORTABLE_GLSL
#include "portable_f32.glsl"
#include "portable_f32_root.glsl"
#include "portable_f32_exp.glsl"
#include "portable_f32_trig.glsl"
#if USE_F64
#include "portable_f64.glsl"
#include "portable_f64_root.glsl"
#include "portable_f64_exp.glsl"
#include "portable_f64_trig.glsl"
#endif
#endif
