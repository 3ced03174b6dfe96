#include "vorticity_rows_beside.glsl"
