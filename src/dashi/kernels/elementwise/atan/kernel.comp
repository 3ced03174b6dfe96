#include "portable_atan.glsl"

T apply(T x) {
    return p_atan(x);
}
