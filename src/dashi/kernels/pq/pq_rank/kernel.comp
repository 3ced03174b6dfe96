#include "planes.glsl"

// Supported sites up to and with a site: the tables, then at most 16 words of its block.
uint rank_with(uint site) {
    uint word = site / 32u;
    uint rank = supers[word / SUPER_WORDS] + blocks[word / BLOCK_WORDS];
    for (uint at = word - word % BLOCK_WORDS; at < word; at++) {
        rank += uint(bitCount(support[at]));
    }
    return rank + uint(bitCount(support[word] & (0xffffffffu >> (31u - site % 32u))));
}

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uint end = min(positions[i], n);
        uint rank = 0u;
        if (end > 0u) {
            rank = rank_with(end - 1u);
        }
        result[i] = rank;
    }
}
