#include "vorticity_back.glsl"
