#include "portable_round.glsl"

T apply(uint i) {
    return p_ceil(x[i]);
}
