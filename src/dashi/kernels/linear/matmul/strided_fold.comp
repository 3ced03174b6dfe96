#include "no_tail.glsl"
#include "strided_fold.glsl"
