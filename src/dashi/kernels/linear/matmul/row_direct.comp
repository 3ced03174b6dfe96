#define DIRECT
#include "columns.glsl"
