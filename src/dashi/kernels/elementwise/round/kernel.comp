#include "portable_round.glsl"

T apply(T x) {
    return p_round(x);
}
