// The compression function of BLAKE3 (O'Connor, Aumasson, Neves, Wilcox-O'Hearn, 2020, section 2.2). Rounds,
// message order and short loops are written out, so that every index is a constant and the words stay in registers.
const uint LOCAL = gl_WorkGroupSize.x;
const uint BLOCK = 64u;
const uint CHUNK_START = 1u;
const uint CHUNK_END = 2u;
const uint PARENT = 4u;
const uint ROOT = 8u;
const uvec4 IV_LOW = uvec4(0x6A09E667u, 0xBB67AE85u, 0x3C6EF372u, 0xA54FF53Au);
const uvec4 IV_HIGH = uvec4(0x510E527Fu, 0x9B05688Cu, 0x1F83D9ABu, 0x5BE0CD19u);

#define FOR4(DO) DO(0u) DO(1u) DO(2u) DO(3u)
#define FOR16(DO) FOR4(DO) DO(4u) DO(5u) DO(6u) DO(7u) DO(8u) DO(9u) DO(10u) DO(11u) DO(12u) DO(13u) DO(14u) DO(15u)

uvec4 rotate_right(uvec4 x, int by) {
    return (x >> by) | (x << (32 - by));
}

// The mixing function on the four columns of the state.
#define MIX(x, y)                     \
    a += b + x;                       \
    d = rotate_right(d ^ a, 16);      \
    c += d;                           \
    b = rotate_right(b ^ c, 12);      \
    a += b + y;                       \
    d = rotate_right(d ^ a, 8);       \
    c += d;                           \
    b = rotate_right(b ^ c, 7);

// Columns, then diagonals (columns of rows turned by 0, 1, 2, 3), with the message words in the order of the round.
#define ROUND(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, ma, mb, mc, md, me, mf)         \
    MIX(uvec4(m[m0], m[m2], m[m4], m[m6]), uvec4(m[m1], m[m3], m[m5], m[m7]))         \
    b = b.yzwx; c = c.zwxy; d = d.wxyz;                                               \
    MIX(uvec4(m[m8], m[ma], m[mc], m[me]), uvec4(m[m9], m[mb], m[md], m[mf]))         \
    b = b.wxyz; c = c.zwxy; d = d.yzwx;

// The chaining value after one more block. The high half of the counter is 0: a storage buffer is below 2^32 bytes.
void compress(inout uvec4 low, inout uvec4 high, uint m[16], uint counter, uint length_, uint flags) {
    uvec4 a = low;
    uvec4 b = high;
    uvec4 c = IV_LOW;
    uvec4 d = uvec4(counter, 0u, length_, flags);
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    ROUND(2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
    ROUND(3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1)
    ROUND(10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6)
    ROUND(12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4)
    ROUND(9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7)
    ROUND(11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13)
    low = a ^ c;
    high = b ^ d;
}
