T texel(uint x, uint y) {
    return canon(field[y * w + x]);
}

#include "bilinear.glsl"

void pixel(uint x, uint y) {
    T u = (mul(a, T(x)) + mul(b, T(y))) + tx;
    T v = (mul(c, T(x)) + mul(d, T(y))) + ty;
    result[y * w + x] = canon(bilinear(u, v));
}
