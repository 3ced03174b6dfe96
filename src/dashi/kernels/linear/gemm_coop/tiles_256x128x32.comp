#define BM 256
#define BN 128
#define BK 32
#define PM 4
#include "coop.glsl"
