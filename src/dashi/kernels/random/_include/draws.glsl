// Random numbers by name, in fp32; the twin, with what they mean, is kernels/random/_draws.py.
#include "philox.glsl"

const uint UNIFORM = 0u;
const uint NORMAL = 1u;

// Between 0 and 1 without either: the middle of one of 2^23 equal parts.
T inside(uint word) {
    return (T(word >> 9) + T(0.5)) * 1.1920928955078125e-07;
}

T draw(uint kind, uvec4 control, uint index, uint stream) {
    uvec4 words = philox(uvec4(index / 4u, control.w, control.z, stream), control.xy);
    if (kind == NORMAL) {
        bool early = index % 4u < 2u;
        T size = p_sqrt(canon(mul(T(-2), p_log(inside(early ? words.x : words.z)))));
        T angle = mul(6.2831854820251465, T((early ? words.y : words.w) >> 8) * 5.9604644775390625e-08);
        return canon(mul(size, index % 2u == 0u ? p_cos(angle) : p_sin(angle)));
    }
    uint pair = index % 4u < 2u ? (index % 2u == 0u ? words.x : words.y) : (index % 2u == 0u ? words.z : words.w);
    if (kind == UNIFORM) {
        return T(pair >> 8) * 5.9604644775390625e-08;
    }
    return canon(-p_log(canon(-p_log(inside(pair)))));
}
