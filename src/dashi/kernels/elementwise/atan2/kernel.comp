#include "portable_atan.glsl"

T apply(T y, T x) {
    return p_atan2(y, x);
}
