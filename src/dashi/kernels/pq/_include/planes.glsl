// Bit planes: one bit per site, 32 sites to a word; and the sign plane, one bit per supported site, found by rank.
#ifndef PLANES_GLSL
#define PLANES_GLSL

const uint BLOCK_WORDS = 16u;   // 512 sites: counts relative to the superblock
const uint SUPER_WORDS = 512u;  // 16384 sites: counts from the start

// Bits of the sites of a word that lie below n.
uint sites_below(uint word, uint n) {
    uint first = word * 32u;
    uint left = first < n ? n - first : 0u;
    return left >= 32u ? 0xffffffffu : (1u << left) - 1u;
}

#endif
