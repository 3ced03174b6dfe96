uint spread(uint half_word) {
    uint pairs = (half_word | half_word << 8) & 0x00ff00ffu;
    return (pairs | pairs << 4) & 0x0f0f0f0fu;
}

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uint first = packed[2u * i];
        uint second = 0u;
        if (16u * i + 8u < n) {
            second = packed[2u * i + 1u];
        }
        result[i] = uvec4(
            spread(first & 0xffffu), spread(first >> 16), spread(second & 0xffffu), spread(second >> 16)
        );
    }
}
