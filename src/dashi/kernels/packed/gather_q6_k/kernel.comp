#include "packed_q6_k.glsl"
#include "packed_gather.glsl"
