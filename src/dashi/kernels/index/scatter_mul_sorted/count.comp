#include "radix_count.glsl"
