#include "sorted_begins.glsl"
