#include "scan_runs.glsl"
