#define PICK least
#include "range64.glsl"
#include "stream64.glsl"
