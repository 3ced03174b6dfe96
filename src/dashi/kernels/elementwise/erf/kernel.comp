#include "portable_erf.glsl"

T apply(T x) {
    return p_erf(x);
}
