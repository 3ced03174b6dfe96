#include "mode_step.glsl"
