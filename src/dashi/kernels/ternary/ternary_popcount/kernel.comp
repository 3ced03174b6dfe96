#include "counts.glsl"

// Bits of the sites of a word, two each, that lie below n.
uint codes_below(uint word) {
    uint first = word * 16u;
    uint left = first < n ? n - first : 0u;
    return left >= 16u ? 0xffffffffu : (1u << (2u * left)) - 1u;
}

void main() {
    uint plus = 0u;
    uint minus = 0u;
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uint codes = packed[i] & codes_below(i);
        uint held = codes & 0x55555555u;
        uint negative = (codes >> 1) & held;
        minus += uint(bitCount(negative));
        plus += uint(bitCount(held ^ negative));
    }
    plus = count_together(plus);
    minus = count_together(minus);
    if (gl_LocalInvocationIndex == 0u) {
        sums[2u * gl_WorkGroupID.x] = plus;
        sums[2u * gl_WorkGroupID.x + 1u] = minus;
    }
}
