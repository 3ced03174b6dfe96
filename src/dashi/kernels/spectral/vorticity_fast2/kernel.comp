#include "vorticity_stage.glsl"
