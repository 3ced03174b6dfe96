#include "state_direct.glsl"
