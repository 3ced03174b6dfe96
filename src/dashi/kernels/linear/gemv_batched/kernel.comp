#include "columns.glsl"
