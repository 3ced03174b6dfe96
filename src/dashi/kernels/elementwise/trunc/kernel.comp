#include "portable_round.glsl"

T apply(uint i) {
    return p_trunc(x[i]);
}
