#define GROUPED
#include "columns.glsl"
