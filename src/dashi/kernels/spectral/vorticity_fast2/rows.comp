#include "vorticity_rows.glsl"
