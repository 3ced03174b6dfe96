#include "packed_fold.glsl"
