#define FIFTH 0
#include "packed_k.glsl"
#include "packed_gather.glsl"
