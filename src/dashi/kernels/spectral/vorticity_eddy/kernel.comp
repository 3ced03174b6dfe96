#include "vorticity_eddy_columns.glsl"
