#include "sorted_runs.glsl"
