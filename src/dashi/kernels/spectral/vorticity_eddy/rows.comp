#include "vorticity_eddy_rows.glsl"
