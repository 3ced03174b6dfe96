#include "columns_held.glsl"
