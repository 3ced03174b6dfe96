#include "radix_scatter.glsl"
