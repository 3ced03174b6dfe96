#include "portable_erf.glsl"

T apply(uint i) {
    return p_erf(x[i]);
}
