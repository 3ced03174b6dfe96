#define VALUE bf16_value
#include "packed_halves.glsl"
