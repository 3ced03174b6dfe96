#include "trits.glsl"

uint spread(uint codes) {
    codes = (codes | codes << 12) & 0x000f000fu;
    codes = (codes | codes << 6) & 0x03030303u;
    return trits_of(trits_support(codes), trits_minus(codes));
}

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uint codes = packed[i];
        result[i] = uvec4(
            spread(codes & 0xffu), spread((codes >> 8) & 0xffu), spread((codes >> 16) & 0xffu), spread(codes >> 24)
        );
    }
}
