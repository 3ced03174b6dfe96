#include "trits.glsl"

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uint word = packed[i];
        uint made[5] = uint[5](0u, 0u, 0u, 0u, 0u);
        uint left = 0u;
        for (uint site = 0u; site < 20u; site++) {
            left = site % 5u == 0u ? (word >> (8u * (site / 5u))) & 0xffu : left;
            uint third = (left * 171u) >> 9;  // left / 3, exact for a byte
            uint digit = left - 3u * third;
            left = third;
            uint byte = digit == 2u ? 0xffu : digit;
            made[site / 4u] |= byte << (8u * (site % 4u));
        }
        for (uint j = 0u; j < 5u; j++) {
            if (20u * i + 4u * j < n) {
                result[5u * i + j] = made[j];
            }
        }
    }
}
