#define FIFTH 0
#define MINIMUM 1
#include "packed_blocks.glsl"
#include "packed_rows.glsl"
