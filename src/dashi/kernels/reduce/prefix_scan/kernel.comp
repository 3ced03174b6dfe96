// Prefix sums of every tile of 64 x 64: within each run from +0, plus the carry of the run, which is the scan, by the
// same rule, of the run totals before it. `totals` holds the tiles' totals and `scanned` their scan, if there are
// several tiles. What lies past n is summed too, but nothing that is written comes after it.
#include "addends.glsl"
#include "tile64.glsl"

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
    for (uint run = 0u; run < RUN; run++) {
        total += carries[run];
        carries[run] = carry;
        carry = before + total;
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

void scan_slice(inout T total, uint row) {
    for (uint k = row; k < row + SLICE; k += 4u) {
        TV v[4];
        [[unroll]] for (uint q = 0u; q < 4u; q++) {
            v[q] = staged[k + q];
        }
        [[unroll]] for (uint q = 0u; q < 4u; q++) {
            staged[k + q] = prefix(total, v[q]);
        }
    }
}

void scan_staged(uint tile, uint run) {
    TV mine[MINE];
    BRING_TILE(tile, mine)
    T total = T(0);
    [[unroll]] for (uint slice = 0u; slice < SLICES; slice++) {
        PUT_SLICE(slice, mine)
        barrier();
        if (run < RUN) {
            scan_slice(total, run * ROW);
        }
        barrier();
        [[unroll]] for (uint m = 0u; m < PART; m++) {
            mine[slice * PART + m] = staged[mine_staged(m)];
        }
        barrier();
    }
    if (run < RUN) {
        carries[run] = total;
    }
    barrier();
    if (run == 0u) {
        scan_totals(tile);
    }
    barrier();
    [[unroll]] for (uint m = 0u; m < MINE; m++) {
        uint j = mine_place(tile, m);
        if (j * ELEMS < n) {
            write(j, carries[mine_run(m)] + mine[m]);
        }
    }
}

void scan_direct(uint tile, uint run) {
    uint start = tile * TILE_VECTORS + run * RUN_VECTORS;
    T total = T(0);
    for (uint j = start; run < RUN && j < start + RUN_VECTORS && j * ELEMS < n; j++) {
        prefix(total, bring(j));
    }
    if (run < RUN) {
        carries[run] = total;
    }
    barrier();
    if (run == 0u) {
        scan_totals(tile);
    }
    barrier();
    total = T(0);
    for (uint j = start; run < RUN && j < start + RUN_VECTORS && j * ELEMS < n; j++) {
        write(j, carries[run] + prefix(total, bring(j)));
    }
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint tile = gl_WorkGroupID.x; tile < tiles; tile += stride) {
        if (STAGED != 0u) {
            scan_staged(tile, run_of(tile));
        } else {
            scan_direct(tile, run_of(tile));
        }
        barrier();
    }
}
