// Prefix sums of every tile of 64 x 64: within each run from +0, plus the carry of the run, which is the scan, by the
// same rule, of the run totals before it. `totals` holds the tiles' totals and `scanned` their scan, if there are
// several tiles. What lies past n is summed too, but nothing that is written comes after it.
#include "addends.glsl"

const uint RUN = 64u;
const uint TILE = RUN * RUN;
const uint RUN_VECTORS = RUN / ELEMS;
const uint TILE_VECTORS = RUN * RUN_VECTORS;
const uint BATCH = 16u;

shared T carries[RUN];

T scanned_before(uint tile) {
    return tile == 0u ? T(0) : scanned[tile - 1u];
}

// The first run of a tile ends the run of run totals before it: its carry is made of that tile's carry and total.
T first_carry(uint tile) {
    return tile == 0u ? T(0) : scanned_before(tile - 1u) + totals[tile - 1u];
}

// Run totals become the carries of the runs.
void scan_totals(uint tile) {
    T carry = first_carry(tile);
    T before = scanned_before(tile);
    T total = T(0);
    for (uint run = 0u; run < RUN; run += BATCH) {
        T totals_of[BATCH];
        [[unroll]] for (uint q = 0u; q < BATCH; q++) {
            totals_of[q] = carries[run + q];
        }
        [[unroll]] for (uint q = 0u; q < BATCH; q++) {
            total += totals_of[q];
            carries[run + q] = carry;
            carry = before + total;
        }
    }
}

// Prefix sums within a vector, going on from total.
TV prefix(inout T total, TV v) {
    total += v.x;
    v.x = total;
    total += v.y;
    v.y = total;
#if T_IS_F64 == 0
    total += v.z;
    v.z = total;
    total += v.w;
    v.w = total;
#endif
    return v;
}

// Writes vector j, of which at least the first element is before n. Without V, the list may end inside it.
void write(uint j, TV v) {
    if (first != 0u) {
        v = OVER(TV, canon, v);
    }
#ifdef V
    result[j] = v;
#else
    for (uint c = 0u; c < ELEMS && j * ELEMS + c < n; c++) {
        result[j * ELEMS + c] = v[c];
    }
#endif
}

#ifdef QUADS
#include "by_quads.glsl"
#else
#include "by_lanes.glsl"
#endif
