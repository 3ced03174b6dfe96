#define PICK most
#include "range64.glsl"
#include "stream64.glsl"
