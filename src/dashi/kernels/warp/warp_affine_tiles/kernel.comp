T texel(uint x, uint y) {
    return canon(field[y * w + x]);
}

#include "bilinear.glsl"

T entry(uint first, uint k) {
    return canon(table[first + k]);
}

void pixel(uint x, uint y) {
    uint first = 6u * (y / TILE * tiles_x + x / TILE);
    T u = (mul(entry(first, 0u), T(x)) + mul(entry(first, 1u), T(y))) + entry(first, 2u);
    T v = (mul(entry(first, 3u), T(x)) + mul(entry(first, 4u), T(y))) + entry(first, 5u);
    result[y * w + x] = canon(bilinear(u, v));
}
