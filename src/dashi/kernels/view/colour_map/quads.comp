#include "colour.glsl"
#include "field_quads.glsl"
