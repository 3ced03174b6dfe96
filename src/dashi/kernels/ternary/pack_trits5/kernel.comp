// Twenty sites at a time: five bytes of four, packed to four bytes of five.
#include "trits.glsl"

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uint digits[5];
        for (uint j = 0u; j < 5u; j++) {
            uint first = 20u * i + 4u * j;
            digits[j] = 0u;
            if (first < n) {
                uint bytes = s[5u * i + j] & below(first, n);
                digits[j] = trits_support(bytes) + trits_minus(bytes);
            }
        }
        uint word = 0u;
        for (uint site = 0u; site < 20u; site++) {
            const uint weights[5] = uint[5](1u, 3u, 9u, 27u, 81u);
            uint digit = (digits[site / 4u] >> (8u * (site % 4u))) & 3u;
            word += (digit * weights[site % 5u]) << (8u * (site / 5u));
        }
        result[i] = word;
    }
}
