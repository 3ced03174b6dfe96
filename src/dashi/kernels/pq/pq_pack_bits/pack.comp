// One superblock of 16384 sites at a time: its words of the support plane, the counts before its blocks, its own
// count, and the sign bits of its supported sites, close together.
//
// The field is read side by side, 16 sites to a vector; a table turns four sites into their support and their signs
// moved together. Then an invocation takes four vectors in a row, counts, and puts their signs at their rank.
#include "planes.glsl"
#include "trits.glsl"

const uint MEMBERS = 256u;
const uint VECTORS = 4u;       // of every invocation
const uint BLOCKS = 32u;       // of a superblock, each of eight invocations
shared uint fours[256];        // by two bits of each of four sites: support in each of four nibbles, signs above
shared uvec4 halves[MEMBERS];  // support and signs of 16 sites, four times
shared uvec4 counted[MEMBERS / 4u];
shared uvec4 totals[BLOCKS / 4u];
shared uint starts[BLOCKS + 1u];
shared uint gathered[SUPER_WORDS];

uint four_from(uint codes) {
    uint support = 0u, signs = 0u, rank = 0u;
    for (uint site = 0u; site < 4u; site++) {
        uint code = codes >> (2u * site);
        uint held = code & 1u;
        support |= held << site;
        signs |= (held & (code >> 1)) << rank;
        rank += held;
    }
    return support * 0x1111u | signs << 16;
}

// Of sites that do not exist, nothing.
uvec4 read_sites(uint vector) {
    uint first = 16u * vector;
    uvec4 sites = uvec4(0u);
    if (vector <= (n - 1u) / 16u) {
        sites = s[vector];
    }
    if (vector == (n - 1u) / 16u) {
        sites &= below16(first, n);
    }
    return sites;
}

// 16 sites: their support in the lower half, their signs, moved together, in the upper one.
uint half_from(uvec4 sites) {
    // The two low bits of the four bytes come together in the highest byte; no two of the other products meet.
    uvec4 codes = ((sites & 0x03030303u) * 0x01041040u) >> 24;
    uvec4 four = uvec4(fours[codes.x], fours[codes.y], fours[codes.z], fours[codes.w]);
    uint held = (four.x & 0xfu) | (four.y & 0xf0u) | (four.z & 0xf00u) | (four.w & 0xf000u);
    four &= 0xf0000u;
    return held | four.x | four.y << bitCount(held & 0xfu) | four.z << bitCount(held & 0xffu) |
           four.w << bitCount(held & 0xfffu);
}

uint word_from(uint low, uint high) {
    return (low & 0xffffu) | high << 16;
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

// Counts of the invocations to the ranks that they start from: within blocks, then the blocks. All call it together.
uint rank_from(uint index, uint own) {
    uint me = gl_LocalInvocationIndex;
    counted[me / 4u][me % 4u] = own;
    barrier();
    uint total = 0u;
    if (me < BLOCKS) {
        uvec4 a = counted[2u * me], b = counted[2u * me + 1u];
        uint first = a.x + a.y, third = first + a.z, fourth = third + a.w, sixth = fourth + b.x + b.y;
        counted[2u * me] = uvec4(0u, a.x, first, third);
        counted[2u * me + 1u] = uvec4(fourth, fourth + b.x, sixth, sixth + b.z);
        total = sixth + b.z + b.w;
        totals[me / 4u][me % 4u] = total;
    }
    barrier();
    if (me < BLOCKS) {
        uint before = 0u;
        [[unroll]] for (uint i = 0u; i < BLOCKS / 4u; i++) {
            uvec4 four = totals[i];
            before += (4u * i < me ? four.x : 0u) + (4u * i + 1u < me ? four.y : 0u);
            before += (4u * i + 2u < me ? four.z : 0u) + (4u * i + 3u < me ? four.w : 0u);
        }
        starts[me] = before;
        if ((index * BLOCKS + me) * BLOCK_WORDS < words) {
            blocks[index * BLOCKS + me] = before;
        }
        if (me == BLOCKS - 1u) {
            starts[BLOCKS] = before + total;
            counts[index] = before + total;
        }
    }
    barrier();
    return starts[me / 8u] + counted[me / 4u][me % 4u];
}

void write_support(uint index) {
    [[unroll]] for (uint i = 0u; i < SUPER_WORDS / MEMBERS; i++) {
        uint at = i * MEMBERS + gl_LocalInvocationIndex;
        uvec4 four = halves[at / 2u];
        uint word = index * SUPER_WORDS + at;
        if (word < words) {
            support[word] = (at & 1u) == 0u ? word_from(four.x, four.y) : word_from(four.z, four.w);
            signs[word] = 0u;
        }
    }
}

void pack_super(uint index) {
    uint me = gl_LocalInvocationIndex;
    uvec4 sites[VECTORS];
    [[unroll]] for (uint i = 0u; i < VECTORS; i++) {
        sites[i] = read_sites(index * VECTORS * MEMBERS + i * MEMBERS + me);
    }
    gathered[me] = 0u;
    gathered[me + MEMBERS] = 0u;
    [[unroll]] for (uint i = 0u; i < VECTORS; i++) {
        halves[(i * MEMBERS + me) / 4u][me % 4u] = half_from(sites[i]);
    }
    barrier();
    uvec4 own = halves[me];
    uint first = uint(bitCount(word_from(own.x, own.y)));
    uint second = uint(bitCount(word_from(own.z, own.w)));
    write_support(index);
    uint rank = rank_from(index, first + second);
    put(rank, own.x >> 16 | (own.y >> 16) << bitCount(own.x & 0xffffu));
    put(rank + first, own.z >> 16 | (own.w >> 16) << bitCount(own.z & 0xffffu));
    barrier();
    uint count = starts[BLOCKS];
    [[unroll]] for (uint i = 0u; i < SUPER_WORDS / MEMBERS; i++) {
        uint at = i * MEMBERS + me;
        if (at * 32u < count) {
            dense[index * SUPER_WORDS + at] = gathered[at];
        }
    }
    barrier();
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    fours[gl_LocalInvocationIndex] = four_from(gl_LocalInvocationIndex);
    barrier();
    for (uint index = gl_WorkGroupID.x; index < many; index += stride) {
        pack_super(index);
    }
}
