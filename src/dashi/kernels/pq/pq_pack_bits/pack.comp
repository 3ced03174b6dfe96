// One superblock of 16384 sites at a time: its words of the support plane, the counts before its blocks, its own
// count, and the sign bits of its supported sites, close together.
//
// An invocation takes the 32 sites of two words; products gather their bits, and the signs move together in pairs, fours,
// eights and a word, all of one kind at once, without tables or branches. With STAGED, the field is read side by side,
// bits of 16 sites go to the invocations that take them through shared memory, and so do their counts; else every
// invocation reads its own sites, 32 in a row, and subgroups add the counts.
#include "planes.glsl"
#include "trits.glsl"

const uint WORDS = 2u;                     // of an invocation
const uint MEMBERS = SUPER_WORDS / WORDS;  // each with a word in both halves of the superblock
const uint VECTORS = 2u * WORDS;           // of 16 sites, of an invocation
const uint RUNS = 16u;
const uint RUN = MEMBERS / RUNS;
shared uint gathered[SUPER_WORDS];
#ifdef STAGED
shared uvec2 halves[SUPER_WORDS];  // support of 16 sites, their signs above, twice
#endif
// Counts of two words, the second above.
shared uint counted[MEMBERS];
shared uint totals[MEMBERS];

// The lowest bit of every nibble, or any other: of eight sites they come together, in order, in the highest byte of the
// product. No two of the other products meet, so nothing carries.
const uint GATHER = 0x01020408u;

const uint TOP = 0xff000000u;

// Of twice eight sites, those of x and y together: their support and their signs in the highest bytes.
void gather(uvec4 sites, out uvec2 held, out uvec2 minus) {
    uvec2 eight = (sites.xz & 0x0f0f0f0fu) | ((sites.yw << 4) & 0xf0f0f0f0u);
    held = (eight & 0x11111111u) * GATHER;
    minus = (eight & 0x22222222u) * (GATHER >> 1);
}

#ifdef STAGED
// 16 sites: their support, their signs above.
uint half_from(uvec4 sites) {
    uvec2 held, minus;
    gather(sites, held, minus);
    return held.x >> 24 | (held.y >> 16 & 0xff00u) | (minus.x >> 8 & 0xff0000u) | (minus.y & TOP);
}

// 32 sites: their support, and their signs beside it.
uvec2 bits_from(uvec2 pair) {
    return uvec2((pair.x & 0xffffu) | pair.y << 16, pair.x >> 16 | (pair.y & 0xffff0000u));
}
#else
// Highest bytes, the first to the lowest place.
uint joined(uvec2 low, uvec2 high) {
    uint bits = low.x >> 8 | (low.y & TOP);
    bits = bits >> 8 | (high.x & TOP);
    return bits >> 8 | (high.y & TOP);
}

// 32 sites: their support, and their signs beside it.
uvec2 word_from(uvec4 low, uvec4 high) {
    uvec2 low_held, low_minus, high_held, high_minus;
    gather(low, low_held, low_minus);
    gather(high, high_held, high_minus);
    return uvec2(joined(low_held, high_held), joined(low_minus, high_minus));
}
#endif

uint down(uint bits, uint mask, int far) {
    uint moved = bits & mask;
    return bits ^ moved ^ (moved >> far);
}

// The signs of the supported sites of a word, moved together; the number of the others.
uint compress(uvec2 word, out uint others) {
    uint held = word.x;
    uint bits = down(word.x & word.y, ~(held << 1) & 0xaaaaaaaau, 1);
    // The upper half of every four, eight and word goes down by the sites without support in the lower one.
    uint count = ~held - ((~held >> 1) & 0x55555555u);
    bits = down(bits, (count & 0x11111111u) * 12u, 1);
    bits = down(bits, (count & 0x22222222u) * 6u, 2);
    count = (count & 0x33333333u) + ((count >> 2) & 0x33333333u);
    bits = down(bits, (count & 0x01010101u) * 0xf0u, 1);
    bits = down(bits, (count & 0x02020202u) * 0x7cu, 2);
    bits = down(bits, (count & 0x04040404u) * 0x3cu, 4);
    count = ((count + (count >> 4)) & 0x0f0f0f0fu) * ONES;
    others = count >> 24;
    return (bits & 0xffu) | (bits & 0xff00u) >> (count & 31u) | (bits & 0xff0000u) >> (count >> 8 & 31u) |
           (bits & 0xff000000u) >> (count >> 16 & 31u);
}

void put(uint rank, uint bits) {
    uint apart = rank & 31u;
    uint rest = (bits >> 1) >> (31u - apart);
    atomicOr(gathered[rank >> 5], bits << apart);
    if (rest != 0u) {
        atomicOr(gathered[(rank >> 5) + 1u], rest);
    }
}

// Counts of every invocation to the sums before it, and to those of all. All invocations call it together.
uint before_shared(uint me, uint own, out uint every) {
    counted[me] = own;
    barrier();
    if (me < RUNS) {
        uint sum = 0u;
        [[unroll]] for (uint i = 0u; i < RUN; i++) {
            uint next = counted[RUN * me + i];
            counted[RUN * me + i] = sum;
            sum += next;
        }
        totals[me] = sum;
    }
    barrier();
    uint before = counted[me];
    every = 0u;
    [[unroll]] for (uint i = 0u; i < RUNS; i++) {
        uint total = totals[i];
        before += i < me / RUN ? total : 0u;
        every += total;
    }
    return before;
}

#ifndef STAGED
bool whole_subgroups() {
    return gl_NumSubgroups * gl_SubgroupSize == MEMBERS;
}

// Invocations in the order of their subgroups, where those are full.
uint member() {
    return whole_subgroups() ? gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID : gl_LocalInvocationIndex;
}

uint before_me(uint me, uint own, out uint every) {
    if (!whole_subgroups()) {
        return before_shared(me, own, every);
    }
    uint before = subgroupExclusiveAdd(own);
    if (gl_SubgroupInvocationID == gl_SubgroupSize - 1u) {
        totals[gl_SubgroupID] = before + own;
    }
    barrier();
    every = 0u;
    for (uint i = 0u; i < gl_NumSubgroups; i++) {
        uint total = totals[i];
        before += i < gl_SubgroupID ? total : 0u;
        every += total;
    }
    return before;
}
#else
uint member() {
    return gl_LocalInvocationIndex;
}

uint before_me(uint me, uint own, out uint every) {
    return before_shared(me, own, every);
}
#endif

uint count_of(uint both, uint part) {
    return part == 0u ? both & 0xffffu : both >> 16;
}

void write_word(uint index, uint at, uint held, uint rank) {
    uint word = index * SUPER_WORDS + at;
    if (word < words) {
        support[word] = held;
        signs[word] = 0u;
        if (at % BLOCK_WORDS == 0u) {
            blocks[word / BLOCK_WORDS] = rank;
        }
    }
}

// Where the vector of an invocation lies in its superblock.
uint place_of(uint me, uint i) {
#ifdef STAGED
    return i * MEMBERS + me;
#else
    return 2u * (i / 2u * MEMBERS + me) + i % 2u;
#endif
}

// The sites of an invocation; of sites that do not exist, nothing.
void read_sites(uint me, uint index, out uvec4 sites[VECTORS]) {
    uint first = index * (2u * SUPER_WORDS);
    if (index < n / (32u * SUPER_WORDS)) {
        [[unroll]] for (uint i = 0u; i < VECTORS; i++) {
            sites[i] = s[first + place_of(me, i)];
        }
    } else {
        uint last = (n - 1u) / 16u;
        [[unroll]] for (uint i = 0u; i < VECTORS; i++) {
            uint vector = first + place_of(me, i);
            sites[i] = vector <= last ? s[min(vector, last)] & below16(16u * vector, n) : uvec4(0u);
        }
    }
}

// Support and signs of every word. All invocations call it together.
void words_from(uint me, uvec4 sites[VECTORS], out uvec2 made[WORDS]) {
#ifdef STAGED
    [[unroll]] for (uint i = 0u; i < VECTORS; i++) {
        halves[(i * MEMBERS + me) / 2u][me % 2u] = half_from(sites[i]);
    }
    barrier();
    [[unroll]] for (uint i = 0u; i < WORDS; i++) {
        made[i] = bits_from(halves[i * MEMBERS + me]);
    }
#else
    [[unroll]] for (uint i = 0u; i < WORDS; i++) {
        made[i] = word_from(sites[2u * i], sites[2u * i + 1u]);
    }
#endif
}

void pack_super(uint me, uint index, uvec4 sites[VECTORS]) {
    uvec2 read[WORDS];
    words_from(me, sites, read);
    uint minus[WORDS], own[WORDS];
    [[unroll]] for (uint i = 0u; i < WORDS; i++) {
        gathered[i * MEMBERS + me] = 0u;
        uint others;
        minus[i] = compress(read[i], others);
        own[i] = 32u - others;
    }
    uint every;
    uint before = before_me(me, own[0] | own[1] << 16, every);
    uint count = 0u;
    [[unroll]] for (uint i = 0u; i < WORDS; i++) {
        uint rank = count + count_of(before, i);
        put(rank, minus[i]);
        write_word(index, i * MEMBERS + me, read[i].x, rank);
        count += count_of(every, i);
    }
    if (me == 0u) {
        counts[index] = count;
    }
    barrier();
    [[unroll]] for (uint i = 0u; i < WORDS; i++) {
        uint at = i * MEMBERS + me;
        if (at * 32u < count) {
            dense[index * SUPER_WORDS + at] = gathered[at];
        }
    }
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    uint me = member();
    uvec4 sites[VECTORS];
    for (uint index = gl_WorkGroupID.x; index < many; index += stride) {
        read_sites(me, index, sites);
        pack_super(me, index, sites);
        if (index + stride < many) {
            barrier();
        }
    }
}
