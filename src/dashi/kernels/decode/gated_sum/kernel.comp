// Four sites for every word of the mask.
#include "trits.glsl"

T gated(T value, uint byte) {
    uint support = byte & 1u;
    uint minus = (byte >> 1) & support;
    bool there = gate == 0u || support == 1u;
    return there ? (gate == 2u && minus == 1u ? -value : value) : T(0);
}

void main() {
    for (uint item = gl_GlobalInvocationID.x; item < total; item += stride) {
        uint word = mask[item];
        for (uint i = 4u * item; i < min(4u * item + 4u, n); i++) {
            result[i] = canon(canon(low[i]) + gated(canon(rest[i]), word >> (8u * (i % 4u))));
        }
    }
}
