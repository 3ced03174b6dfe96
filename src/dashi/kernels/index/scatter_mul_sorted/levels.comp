#include "sorted_levels.glsl"
