#define GROUPED
#define FIFTH 0
#define MINIMUM 0
#include "packed_blocks.glsl"
#include "packed_rows.glsl"
