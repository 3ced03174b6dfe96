#include "portable_atan.glsl"

T apply(uint i) {
    return p_atan(x[i]);
}
