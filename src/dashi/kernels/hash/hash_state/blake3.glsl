// The compression function of BLAKE3 (O'Connor, Aumasson, Neves, Wilcox-O'Hearn, 2020, section 2.2). Rounds,
// message order and short loops are written out, so that every index is a constant and the words stay in registers.
const uint LOCAL = gl_WorkGroupSize.x;
const uint BLOCK = 64u;
const uint CHUNK_START = 1u;
const uint CHUNK_END = 2u;
const uint PARENT = 4u;
const uint ROOT = 8u;
const uint IV[8] = uint[8](
    0x6A09E667u, 0xBB67AE85u, 0x3C6EF372u, 0xA54FF53Au, 0x510E527Fu, 0x9B05688Cu, 0x1F83D9ABu, 0x5BE0CD19u
);

#define FOR8(DO) DO(0u) DO(1u) DO(2u) DO(3u) DO(4u) DO(5u) DO(6u) DO(7u)
#define FOR16(DO) FOR8(DO) DO(8u) DO(9u) DO(10u) DO(11u) DO(12u) DO(13u) DO(14u) DO(15u)

uint rotate_right(uint x, int by) {
    return (x >> by) | (x << (32 - by));
}

#define MIX(a, b, c, d, x, y)                      \
    v[a] += v[b] + m[x];                           \
    v[d] = rotate_right(v[d] ^ v[a], 16);          \
    v[c] += v[d];                                  \
    v[b] = rotate_right(v[b] ^ v[c], 12);          \
    v[a] += v[b] + m[y];                           \
    v[d] = rotate_right(v[d] ^ v[a], 8);           \
    v[c] += v[d];                                  \
    v[b] = rotate_right(v[b] ^ v[c], 7);

// Columns, then diagonals, with the message words in the order of the round.
#define ROUND(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, ma, mb, mc, md, me, mf) \
    MIX(0, 4, 8, 12, m0, m1) MIX(1, 5, 9, 13, m2, m3)                         \
    MIX(2, 6, 10, 14, m4, m5) MIX(3, 7, 11, 15, m6, m7)                       \
    MIX(0, 5, 10, 15, m8, m9) MIX(1, 6, 11, 12, ma, mb)                       \
    MIX(2, 7, 8, 13, mc, md) MIX(3, 4, 9, 14, me, mf)

// The chaining value after one more block. The high half of the counter is 0: a storage buffer is below 2^32 bytes.
void compress(inout uint value[8], uint m[16], uint counter, uint length_, uint flags) {
    uint v[16] = uint[16](
        value[0], value[1], value[2], value[3], value[4], value[5], value[6], value[7],
        IV[0], IV[1], IV[2], IV[3], counter, 0u, length_, flags
    );
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    ROUND(2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
    ROUND(3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1)
    ROUND(10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6)
    ROUND(12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4)
    ROUND(9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7)
    ROUND(11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13)
    value = uint[8](
        v[0] ^ v[8], v[1] ^ v[9], v[2] ^ v[10], v[3] ^ v[11],
        v[4] ^ v[12], v[5] ^ v[13], v[6] ^ v[14], v[7] ^ v[15]
    );
}
