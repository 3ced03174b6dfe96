#define GROUPED
#define DIRECT
#include "columns.glsl"
