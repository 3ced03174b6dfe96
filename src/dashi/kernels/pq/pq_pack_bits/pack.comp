// One superblock of 16384 sites at a time: its words of the support plane, the counts before its blocks, its own
// count, and the sign bits of its supported sites, close together. An invocation has ROWS words, a row apart each:
// four rows of 128 invocations, or two of 256.
#include "planes.glsl"

const uint ROWS = SUPER_WORDS / MEMBERS;
const uint MOST_ROWS = 4u;
shared uvec2 counted[2][256];
shared uint gathered[SUPER_WORDS];

// Support and sign bits of the 32 sites of a word.
void read_sites(uint word, out uint held, out uint negative) {
    held = 0u;
    negative = 0u;
    if (word < words) {
        uvec4 a = s[2u * word] & 0x03030303u;
        uvec4 b = uvec4(0u);
        if (word * 32u + 16u < n) {
            b = s[2u * word + 1u] & 0x03030303u;
        }
        uint x = a.x | a.y << 4 | b.x << 2 | b.y << 6;
        uint y = a.z | a.w << 4 | b.z << 2 | b.w << 6;
        held = sites_in_order((x & EVEN) | ((y << 1) & ~EVEN)) & sites_below(word, n);
        negative = sites_in_order(((x >> 1) & EVEN) | (y & ~EVEN)) & held;
    }
}

// Supported sites before this invocation's in each row, 16 bits for each of at most four rows, and in the whole of them.
// All invocations call it together.
uvec2 count_before(uvec2 own, out uvec2 all_rows) {
    uint me = gl_LocalInvocationIndex;
    counted[0][me] = own;
    barrier();
    uint from = 0u;
    for (uint reach = 1u; reach < MEMBERS; reach <<= 1) {
        uvec2 sum = counted[from][me];
        if (me >= reach) {
            sum += counted[from][me - reach];
        }
        from = 1u - from;
        counted[from][me] = sum;
        barrier();
    }
    all_rows = counted[from][MEMBERS - 1u];
    return counted[from][me] - own;
}

uint row_of(uvec2 sums, uint row) {
    return (sums[row / 2u] >> (16u * (row % 2u))) & 0xffffu;
}

void put(uint rank, uint bits) {
    uint apart = rank & 31u;
    if (bits != 0u) {
        atomicOr(gathered[rank >> 5], bits << apart);
        uint rest = (bits >> 1) >> (31u - apart);
        if (rest != 0u) {
            atomicOr(gathered[(rank >> 5) + 1u], rest);
        }
    }
}

void pack_super(uint index) {
    uint me = gl_LocalInvocationIndex;
    uint first = index * SUPER_WORDS + me;
    uint held[MOST_ROWS], negative[MOST_ROWS];
    uint through[MOST_ROWS] = uint[MOST_ROWS](0u, 0u, 0u, 0u);
    for (uint row = 0u; row < ROWS; row++) {
        gathered[row * MEMBERS + me] = 0u;
        read_sites(first + row * MEMBERS, held[row], negative[row]);
        through[row] = counts_through(held[row]);
    }
    uvec2 own = uvec2(through[0] >> 24 | (through[1] >> 24) << 16, through[2] >> 24 | (through[3] >> 24) << 16);
    uvec2 all_rows;
    uvec2 before = count_before(own, all_rows);
    uint start = 0u;
    for (uint row = 0u; row < ROWS; row++) {
        uint word = first + row * MEMBERS;
        uint rank = start + row_of(before, row);
        start += row_of(all_rows, row);
        put(rank, compress(negative[row], held[row], through[row]));
        if (word < words) {
            support[word] = held[row];
            signs[word] = 0u;
        }
        if (word < words && word % BLOCK_WORDS == 0u) {
            blocks[word / BLOCK_WORDS] = rank;
        }
    }
    if (me == 0u) {
        counts[index] = start;
    }
    barrier();
    for (uint at = me; at * 32u < start; at += MEMBERS) {
        dense[index * SUPER_WORDS + at] = gathered[at];
    }
    barrier();
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint index = gl_WorkGroupID.x; index < many; index += stride) {
        pack_super(index);
    }
}
