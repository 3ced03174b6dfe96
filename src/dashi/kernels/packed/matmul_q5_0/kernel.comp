#define FIFTH 1
#define MINIMUM 0
#include "packed_blocks.glsl"
#include "packed_rows.glsl"
