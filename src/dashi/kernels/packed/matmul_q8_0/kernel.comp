#include "packed_q8_0.glsl"
#include "packed_rows.glsl"
