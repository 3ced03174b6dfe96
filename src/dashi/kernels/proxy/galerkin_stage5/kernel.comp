#include "galerkin_stage.glsl"
