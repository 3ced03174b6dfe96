#include "portable_pow.glsl"

T apply(uint i) {
    return p_pow(x[i], y[i]);
}
