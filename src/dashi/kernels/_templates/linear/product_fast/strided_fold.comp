#include "_templates/linear/product/tail.glsl"
#include "strided_fold.glsl"
