#include "sorted_add.glsl"
