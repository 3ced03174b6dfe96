#include "philox.glsl"

#if T_IS_F64
const T TWO_PI = 6.283185307179586lf;
#else
const T TWO_PI = 6.2831854820251465;
#endif

// The steps done, if what lies there is a whole number that can be one.
uint steps_done(T clock) {
#if T_IS_F64
    return unpackDouble2x32(clock).y < 0x41e00000u ? uint(clock) : 0u;
#else
    return floatBitsToUint(clock) < 0x4b800000u ? uint(clock) : 0u;
#endif
}

T unit(uint word) {
#if T_IS_F64
    return T(word) * 2.3283064365386963e-10lf;
#else
    return T(word >> 8) * 5.9604644775390625e-08;
#endif
}

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint mode = i % plane;
        uint member = i / plane;
        uint row = mode / columns;
        uint column = mode % columns;
        P z = P(canon(x[i].x), canon(x[i].y));
        T size = canon(amplitude[mode]);
        if (size != T(0)) {
            // The modes of a real field come in pairs: of those in the first column both are stored.
            bool mirrored = column == 0u && row > rows / 2u;
            uint ky = mirrored ? rows - row : row <= rows / 2u ? row : row - rows;
            uint done = steps_done(canon(x[member * plane].y));
            T angle = mul(TWO_PI, unit(philox(uvec4(column, ky, done, 0u), uvec2(seed + member, 0u)).x));
            T sine = mul(size, p_sin(angle));
            z += P(mul(size, p_cos(angle)), mirrored ? -sine : sine);
        }
        if (mode == 0u) {
            z.y += T(1);
        }
        result[i] = P(canon(z.x), canon(z.y));
    }
}
