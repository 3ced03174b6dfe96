#include "gemm_fold.glsl"
