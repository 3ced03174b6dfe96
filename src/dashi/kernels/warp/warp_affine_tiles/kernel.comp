// An invocation makes ROWS pixels, one below the other: the matrix is read where a tile begins, and what it makes of the
// column is kept for the pixels of the tile.
T texel(uint x, uint y) {
    return canon(field[y * w + x]);
}

#include "bilinear.glsl"

// u and v are (of_x + mul(by_y, y)) + shift.
struct Axis {
    T of_x;
    T by_y;
    T shift;
};

Axis axis_from(uint first, T x) {
    return Axis(mul(canon(table[first]), x), canon(table[first + 1u]), canon(table[first + 2u]));
}

T along(Axis axis, T y) {
    return (axis.of_x + mul(axis.by_y, y)) + axis.shift;
}

void main() {
    for (uint block = gl_WorkGroupID.x; block < blocks; block += stride) {
        uint x = block % across * 32u + gl_LocalInvocationID.x;
        uint y = (block / across * 8u + gl_LocalInvocationID.y) * ROWS;
        if (x >= w || y >= h) {
            continue;
        }
        uint left = 0u;  // rows of this tile
        Axis for_u;
        Axis for_v;
        [[unroll]] for (uint k = 0u; k < ROWS; k++) {
            if (y < h) {
                if (left == 0u) {
                    uint first = 6u * (y / TILE * tiles_x + x / TILE);
                    for_u = axis_from(first, T(x));
                    for_v = axis_from(first + 3u, T(x));
                    left = TILE - y % TILE;
                }
                result[y * w + x] = canon(bilinear(along(for_u, T(y)), along(for_v, T(y))));
            }
            left--;
            y++;
        }
    }
}
