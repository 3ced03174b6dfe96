#include "grey.glsl"
#include "field_quads.glsl"
