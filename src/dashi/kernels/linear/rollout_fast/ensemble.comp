#include "rollout_ensemble.glsl"
