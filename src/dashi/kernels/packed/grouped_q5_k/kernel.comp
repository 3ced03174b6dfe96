#define GROUPED
#define FIFTH 1
#include "packed_k.glsl"
#include "packed_rows.glsl"
