#define SIGNED(v) (-(v))
#include "best64.glsl"
#include "stream64.glsl"
