// Sixteen sites at a time: two bits of every byte.
#include "trits.glsl"

uint four(uint bytes) {
    uint held = trits_support(bytes);
    uint codes = held | trits_minus(bytes) << 1;
    codes = (codes | codes >> 6) & 0x000f000fu;
    return (codes | codes >> 12) & 0xffu;
}

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uvec4 bytes = s[i] & below16(16u * i, n);
        result[i] = four(bytes.x) | four(bytes.y) << 8 | four(bytes.z) << 16 | four(bytes.w) << 24;
    }
}
