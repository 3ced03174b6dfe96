#define VALUE bf16_value
#define SMALL 1
#include "packed_halves.glsl"
#include "packed_rows.glsl"
