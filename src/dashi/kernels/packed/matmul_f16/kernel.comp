#define VALUE f16_value
#define SMALL 0
#include "packed_halves.glsl"
#include "packed_rows.glsl"
