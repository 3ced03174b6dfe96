// Four sites to a word of the result; EACH words for an invocation, all loaded before any is stored.
#include "trits.glsl"

const uint MEMBERS = 256u;
const uint MOST = 4u;

#if T_IS_F64
// Two comparisons of canonical values; what is stored past the end means nothing.
uint trit(uvec2 bits) {
    T value = canon(packDouble2x32(bits));
    T least = canon(tau);
    uint byte = value >= least ? 1u : (value <= -least ? 0xffu : 0u);
    return is_nan_bits(value) ? 0u : byte;
}

uint four(uint i) {
    uvec4 a = x[2u * i];
    uvec4 b = uvec4(0u);
    if (4u * i + 2u < n) {
        b = x[2u * i + 1u];
    }
    return trit(a.xy) | trit(a.zw) << 8 | trit(b.xy) << 16 | trit(b.zw) << 24;
}
#else
// tau is not negative, so the magnitude decides: from tau up to infinity. Below the smallest canonical value there is
// no sign.
uint trit(uint bits) {
    uint least = floatBitsToUint(canon(tau));
    bool held = (bits & 0x7fffffffu) - least <= F32_INF - least;
    uint byte = bits >= (0x80000000u | F32_TINY) ? 0xffu : 1u;
    return held ? byte : 0u;
}

uint four(uint i) {
    uvec4 a = x[i];
    return trit(a.x) | trit(a.y) << 8 | trit(a.z) << 16 | trit(a.w) << 24;
}
#endif

void main() {
    for (uint base = gl_WorkGroupID.x * MEMBERS * EACH; base < items; base += stride) {
        uint first = base + gl_LocalInvocationIndex;
        uint made[MOST];
        for (uint e = 0u; e < EACH; e++) {
            uint i = first + e * MEMBERS;
            if (i < items) {
                made[e] = four(i);
            }
        }
        for (uint e = 0u; e < EACH; e++) {
            uint i = first + e * MEMBERS;
            if (i < items) {
                result[i] = made[e];
            }
        }
    }
}
