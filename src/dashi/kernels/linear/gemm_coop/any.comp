#define BM 128
#define BN 128
#define BK 32
#define PM 2
#include "coop.glsl"
