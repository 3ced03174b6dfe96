#include "scan_totals.glsl"
