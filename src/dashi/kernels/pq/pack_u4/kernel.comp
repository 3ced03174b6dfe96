// Sixteen codes at a time, one to a byte; two words come of them.
#include "trits.glsl"

uint four(uint bytes) {
    uint pairs = bytes & 0x0f0f0f0fu;
    pairs = (pairs | pairs >> 4) & 0x00ff00ffu;
    return (pairs | pairs >> 8) & 0xffffu;
}

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uvec4 bytes = codes[i] & below16(16u * i, n);
        result[2u * i] = four(bytes.x) | four(bytes.y) << 16;
        if (16u * i + 8u < n) {
            result[2u * i + 1u] = four(bytes.z) | four(bytes.w) << 16;
        }
    }
}
