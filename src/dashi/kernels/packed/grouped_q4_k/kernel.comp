#define GROUPED
#define FIFTH 0
#include "packed_k.glsl"
#include "packed_rows.glsl"
