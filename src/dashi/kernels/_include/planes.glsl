// Bit planes: one bit per site, 32 sites to a word; and the sign plane, one bit per supported site, found by rank.
#ifndef PLANES_GLSL
#define PLANES_GLSL

const uint BLOCK_WORDS = 16u;   // 512 sites: counts relative to the superblock
const uint SUPER_WORDS = 512u;  // 16384 sites: counts from the start
const uint EVEN = 0x55555555u;

uint swapped(uint x, uint shift, uint mask) {
    uint t = (x ^ (x >> shift)) & mask;
    return x ^ t ^ (t << shift);
}

// Bit 8b + 4j0 + 2j2 + j1 (byte b of word j = 4j2 + 2j1 + j0 of a field) goes to bit 4j + b, the order of the sites:
// two exchanges of index bits. It is its own reverse.
uint sites_in_order(uint x) {
    return swapped(swapped(x, 14u, 0x0000ccccu), 7u, 0x00aa00aau);
}

// Bits of the sites of a word that lie below n.
uint sites_below(uint word, uint n) {
    uint first = word * 32u;
    uint left = first < n ? n - first : 0u;
    return left >= 32u ? 0xffffffffu : (1u << left) - 1u;
}

// In every byte: the bits set in it and in those below it.
uint counts_through(uint mask) {
    uint sums = mask - ((mask >> 1) & EVEN);
    sums = (sums & 0x33333333u) + ((sums >> 2) & 0x33333333u);
    return ((sums + (sums >> 4)) & 0x0f0f0f0fu) * 0x01010101u;
}

// Which bits of a byte have an odd number of bits set below them or at their place.
uint parity_in_bytes(uint x) {
    x ^= (x << 1) & 0xfefefefeu;
    x ^= (x << 2) & 0xfcfcfcfcu;
    return x ^ ((x << 4) & 0xf0f0f0f0u);
}

// How bits of the mask move together at the low end of their bytes: those of moves[i] by 2^i places, i = 0, 1, 2.
// H. S. Warren, Hacker's Delight, 2nd edition, section 7-4, on the four bytes at once.
void plan_moves(uint mask, out uint moves[3]) {
    uint zeros = (~mask << 1) & 0xfefefefeu;
    for (uint i = 0u; i < 3u; i++) {
        uint odd = parity_in_bytes(zeros);
        moves[i] = odd & mask;
        mask = (mask ^ moves[i]) | (moves[i] >> (1u << i));
        zeros &= ~odd;
    }
}

// The bits under the mask, moved together at the low end: within bytes, then the bytes. `through` is
// counts_through(mask).
uint compress(uint bits, uint mask, uint through) {
    uint moves[3];
    plan_moves(mask, moves);
    bits &= mask;
    for (uint i = 0u; i < 3u; i++) {
        uint part = bits & moves[i];
        bits = (bits ^ part) | (part >> (1u << i));
    }
    return (bits & 0xffu) | ((bits >> 8) & 0xffu) << (through & 0xffu) |
           ((bits >> 16) & 0xffu) << ((through >> 8) & 0xffu) | (bits >> 24) << ((through >> 16) & 0xffu);
}

// The reverse: the lowest bits, moved apart to the places of the mask.
uint expand(uint bits, uint mask, uint through) {
    uint moves[3];
    plan_moves(mask, moves);
    bits = (bits & 0xffu) | ((bits >> (through & 0xffu)) & 0xffu) << 8 |
           ((bits >> ((through >> 8) & 0xffu)) & 0xffu) << 16 | (bits >> ((through >> 16) & 0xffu)) << 24;
    for (uint i = 0u; i < 3u; i++) {
        uint last = 2u - i;
        bits = (bits & ~moves[last]) | ((bits << (1u << last)) & moves[last]);
    }
    return bits & mask;
}

#endif
