#include "tail.glsl"
#include "strided_fold.glsl"
