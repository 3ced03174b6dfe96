#define BM 128
#define BN 256
#define BK 32
#define PM 2
#include "coop.glsl"
