#include "philox.glsl"

const uint STREAM = 3u;  // 0 is of kicks, 1 and 2 of initial conditions: one seed must not give one field twice

#if T_IS_F64
const T TWO_PI = 6.283185307179586lf;
const T UNIT = 2.3283064365386963e-10lf;
#define BITS(word) word
#else
const T TWO_PI = 6.2831854820251465;
const T UNIT = 5.9604644775390625e-08;
#define BITS(word) (word >> 8)
#endif

// A complex number with mean square 1: of size 1, or Gaussian.
P drawn(uvec4 words) {
    T angle = mul(TWO_PI, T(BITS(words.x)) * UNIT);
    P turn = P(p_cos(angle), p_sin(angle));
    if (gaussian == 0u) {
        return turn;
    }
    T size = p_sqrt(canon(-p_log((T(BITS(words.y)) + T(1)) * UNIT)));
    return P(mul(size, turn.x), mul(size, turn.y));
}

void main() {
    uint seed = keys[0];
    uint frame = keys[1];
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint mode = i % plane;
        uint row = mode / columns;
        uint column = mode % columns;
        T size = canon(amplitude[mode]);
        P z = P(0);
        if (size != T(0)) {
            // Both modes of a pair are stored in the first column, and in the last of an even grid.
            bool edge = column == 0u || 2u * column == rows;
            bool mirrored = edge && row > rows / 2u;
            uint ky = mirrored ? rows - row : row <= rows / 2u ? row : row - rows;
            P one = drawn(philox(uvec4(column, ky, frame, STREAM), uvec2(seed + i / plane, 0u)));
            T sine = edge && (row == 0u || 2u * row == rows) ? T(0) : mul(size, one.y);
            z = P(mul(size, one.x), mirrored ? -sine : sine);
        }
        result[i] = P(canon(z.x), canon(z.y));
    }
}
