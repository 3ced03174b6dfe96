#include "ranks.glsl"

// 32 bits of the sign plane from a rank on.
uint signs_from(uint rank) {
    uint at = rank >> 5;
    uint apart = rank & 31u;
    uint bits = at < words ? signs[at] >> apart : 0u;
    if (apart != 0u && at + 1u < words) {
        bits |= signs[at + 1u] << (32u - apart);
    }
    return bits;
}

// Bytes 0, 1 or 0xff from the two bits at the low end of every byte.
uint trits_from(uint codes) {
    codes &= 0x03030303u;
    return codes + (codes & 0x02020202u) * 126u;
}

void main() {
    for (uint tile = gl_WorkGroupID.x; tile * TILE < words; tile += stride) {
        uint word = tile * TILE + gl_LocalInvocationIndex;
        uint mask, rank;
        find_rank(word, mask, rank);
        uint held = sites_in_order(mask);
        uint minus = sites_in_order(expand(signs_from(rank), mask, counts_through(mask)));
        uint x = (held & EVEN) | ((minus << 1) & ~EVEN);
        uint y = ((held >> 1) & EVEN) | (minus & ~EVEN);
        if (word < words) {
            result[2u * word] = uvec4(trits_from(x), trits_from(x >> 4), trits_from(y), trits_from(y >> 4));
        }
        if (word < words && word * 32u + 16u < n) {
            result[2u * word + 1u] =
                uvec4(trits_from(x >> 2), trits_from(x >> 6), trits_from(y >> 2), trits_from(y >> 6));
        }
        barrier();
    }
}
