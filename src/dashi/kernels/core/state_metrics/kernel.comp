#include "state_tile.glsl"
