// Sums over lists of entries, in the canonical order tree64: list k holds the entries from offsets[k] up to
// offsets[k + 1], in the order in which they are stored. A kernel's file defines the product of one entry; which list
// it belongs to (`list_kind`) is for kernels that have several. One invocation sums; kernels/lists.py counts the trips.
T product(uint list_kind, uint e);

const uint RUN = 64u;

#include "not_a_number.glsl"

// A list that is longer than declared, or that leaves the entries, has no sum: a part is never taken for the whole.
bool list_is_whole(uint start, uint beyond, uint entries, uint longest) {
    return start <= beyond && beyond <= entries && beyond - start <= longest;
}

// Products that an invocation makes at a time: they do not wait for each other. Doubles take two registers each.
#if T_IS_F64
const uint AHEAD = 4u;
#else
const uint AHEAD = 8u;
#endif

// The sum of at most 64 entries.
T run_sum(uint list_kind, uint from, uint to) {
    T total = T(0);
    uint e = from;
    for (; e + AHEAD <= to; e += AHEAD) {
        T p0 = product(list_kind, e);
        T p1 = product(list_kind, e + 1u);
        T p2 = product(list_kind, e + 2u);
        T p3 = product(list_kind, e + 3u);
#if !T_IS_F64
        T p4 = product(list_kind, e + 4u);
        T p5 = product(list_kind, e + 5u);
        T p6 = product(list_kind, e + 6u);
        T p7 = product(list_kind, e + 7u);
#endif
        total += p0;
        total += p1;
        total += p2;
        total += p3;
#if !T_IS_F64
        total += p4;
        total += p5;
        total += p6;
        total += p7;
#endif
    }
    for (; e < to; e++) {
        total += product(list_kind, e);
    }
    return total;
}

// The sum of up to 64^4 entries.
T list_sum(uint list_kind, uint start, uint beyond) {
    T sums[3] = T[3](T(0), T(0), T(0));
    for (uint run = 0u; start + run * RUN < beyond; run++) {
        sums[0] += run_sum(list_kind, start + run * RUN, min(start + run * RUN + RUN, beyond));
        for (uint level = 1u; level < 3u && ((run + 1u) & ((1u << (6u * level)) - 1u)) == 0u; level++) {
            sums[level] += sums[level - 1u];
            sums[level - 1u] = T(0);
        }
    }
    return sums[2] + (sums[1] + sums[0]);
}
