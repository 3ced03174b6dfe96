#include "radix_rows.glsl"
