#define VALUE f16_value
#include "packed_halves.glsl"
