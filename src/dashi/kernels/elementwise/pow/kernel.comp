#include "portable_pow.glsl"

T apply(T x, T y) {
    return p_pow(x, y);
}
