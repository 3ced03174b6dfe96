#include "sorted_clamp.glsl"
