// One superblock of 16384 sites at a time: its words of the support plane, the counts before its blocks, its own
// count, and the sign bits of its supported sites, close together.
//
// An invocation takes the 32 sites of a word, WORDS times; products gather their bits, and the signs move together in
// pairs, fours, eights and a word, all of one kind at once, without tables or branches. The kernel defines WORDS, two or
// four, and COUNTS: as many counts, two to a word. With STAGED, the field is read side by side, and bits of 16 sites go to
// the invocations that take them through shared memory; else every invocation reads its own sites, 32 in a row.
#include "planes.glsl"
#include "trits.glsl"

const uint MEMBERS = SUPER_WORDS / WORDS;  // each with a word in every WORDS-th part of the superblock
const uint RUNS = 16u;
const uint RUN = MEMBERS / RUNS;
shared uint gathered[SUPER_WORDS];
#ifdef STAGED
shared uvec2 halves[SUPER_WORDS];  // support of 16 sites, their signs above, twice
#endif
shared COUNTS counted[MEMBERS];
shared COUNTS totals[MEMBERS];

// Of sites that do not exist, nothing.
uvec4 read_sites(uint vector) {
    uint last = (n - 1u) / 16u;
    uvec4 sites = uvec4(0u);
    if (vector <= last) {
        sites = s[vector];
    }
    if (vector == last) {
        sites &= below16(16u * vector, n);
    }
    return sites;
}

// The lowest bit of every nibble, or any other: of eight sites they come together, in order, in the highest byte of the
// product. No two of the other products meet, so nothing carries.
const uint GATHER = 0x01020408u;

// 16 sites: their support, their signs above.
uint half_from(uvec4 sites) {
    uvec2 eight = (sites.xz & 0x0f0f0f0fu) | ((sites.yw << 4) & 0xf0f0f0f0u);
    uvec2 held = (eight & 0x11111111u) * GATHER;
    uvec2 minus = (eight & 0x22222222u) * (GATHER >> 1);
    return held.x >> 24 | (held.y >> 16 & 0xff00u) | (minus.x >> 8 & 0xff0000u) | (minus.y & 0xff000000u);
}

// 32 sites: their support, and their signs beside it.
uvec2 bits_from(uint low, uint high) {
    return uvec2((low & 0xffffu) | high << 16, low >> 16 | (high & 0xffff0000u));
}

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
    if (bits != 0u) {
        atomicOr(gathered[rank >> 5], bits << apart);
        uint rest = (bits >> 1) >> (31u - apart);
        if (rest != 0u) {
            atomicOr(gathered[(rank >> 5) + 1u], rest);
        }
    }
}

// Counts of every invocation to the sums before it, and to those of all. All invocations call it together.
COUNTS before_shared(uint me, COUNTS own, out COUNTS every) {
    counted[me] = own;
    barrier();
    if (me < RUNS) {
        COUNTS sum = COUNTS(0u);
        [[unroll]] for (uint i = 0u; i < RUN; i++) {
            COUNTS next = counted[RUN * me + i];
            counted[RUN * me + i] = sum;
            sum += next;
        }
        totals[me] = sum;
    }
    barrier();
    COUNTS before = counted[me];
    every = COUNTS(0u);
    [[unroll]] for (uint i = 0u; i < RUNS; i++) {
        COUNTS total = totals[i];
        before += i < me / RUN ? total : COUNTS(0u);
        every += total;
    }
    return before;
}

#ifdef SUBGROUPS
bool whole_subgroups() {
    return gl_NumSubgroups * gl_SubgroupSize == MEMBERS;
}

// Invocations in the order of their subgroups, where those are full.
uint member() {
    return whole_subgroups() ? gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID : gl_LocalInvocationIndex;
}

COUNTS before_me(uint me, COUNTS own, out COUNTS every) {
    if (!whole_subgroups()) {
        return before_shared(me, own, every);
    }
    COUNTS before = subgroupExclusiveAdd(own);
    if (gl_SubgroupInvocationID == gl_SubgroupSize - 1u) {
        totals[gl_SubgroupID] = before + own;
    }
    barrier();
    every = COUNTS(0u);
    for (uint i = 0u; i < gl_NumSubgroups; i++) {
        COUNTS total = totals[i];
        before += i < gl_SubgroupID ? total : COUNTS(0u);
        every += total;
    }
    return before;
}
#else
uint member() {
    return gl_LocalInvocationIndex;
}

COUNTS before_me(uint me, COUNTS own, out COUNTS every) {
    return before_shared(me, own, every);
}
#endif

uint count_of(COUNTS both, uint part) {
#if WORDS == 4
    uint pair = both[part / 2u];
#else
    uint pair = both;
#endif
    return part % 2u == 0u ? pair & 0xffffu : pair >> 16;
}

COUNTS counts_from(uint counts[WORDS]) {
#if WORDS == 4
    return uvec2(counts[0] | counts[1] << 16, counts[2] | counts[3] << 16);
#else
    return counts[0] | counts[1] << 16;
#endif
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

// The bits of 16 sites twice, for every word. All invocations call it together.
void read_words(uint me, uint index, out uvec2 made[WORDS]) {
    uvec4 sites[2u * WORDS];
    uint first = index * (2u * SUPER_WORDS);
#ifdef STAGED
    [[unroll]] for (uint i = 0u; i < 2u * WORDS; i++) {
        sites[i] = read_sites(first + i * MEMBERS + me);
    }
    [[unroll]] for (uint i = 0u; i < 2u * WORDS; i++) {
        halves[(i * MEMBERS + me) / 2u][me % 2u] = half_from(sites[i]);
    }
    barrier();
    [[unroll]] for (uint i = 0u; i < WORDS; i++) {
        made[i] = halves[i * MEMBERS + me];
    }
#else
    [[unroll]] for (uint i = 0u; i < 2u * WORDS; i++) {
        sites[i] = read_sites(first + 2u * (i / 2u * MEMBERS + me) + i % 2u);
    }
    [[unroll]] for (uint i = 0u; i < WORDS; i++) {
        made[i] = uvec2(half_from(sites[2u * i]), half_from(sites[2u * i + 1u]));
    }
#endif
}

void pack_super(uint me, uint index) {
    uvec2 read[WORDS];
    read_words(me, index, read);
    uint held[WORDS], minus[WORDS], own[WORDS];
    [[unroll]] for (uint i = 0u; i < WORDS; i++) {
        gathered[i * MEMBERS + me] = 0u;
        uvec2 word = bits_from(read[i].x, read[i].y);
        uint others;
        held[i] = word.x;
        minus[i] = compress(word, others);
        own[i] = 32u - others;
    }
    COUNTS every;
    COUNTS before = before_me(me, counts_from(own), every);
    uint count = 0u;
    [[unroll]] for (uint i = 0u; i < WORDS; i++) {
        uint rank = count + count_of(before, i);
        put(rank, minus[i]);
        write_word(index, i * MEMBERS + me, held[i], rank);
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
    for (uint index = gl_WorkGroupID.x; index < many; index += stride) {
        pack_super(me, index);
        if (index + stride < many) {
            barrier();
        }
    }
}
