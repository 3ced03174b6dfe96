#include "state_rest.glsl"
