// Prefix sums of every tile of 64 x 64: within each run from +0, plus the carry of the run, which is the scan, by the
// same rule, of the run totals before it. `totals` holds the tiles' totals and `scanned` their scan, if there are
// several tiles. A block is read twice: for the totals of its runs, then, from the cache, for the sums.
#include "addend.glsl"
#include "stage64.glsl"

const uint TILES = RUNS / RUN;

T scanned_before(uint tile) {
    return tile == 0u ? T(0) : scanned[tile - 1u];
}

// The first run of a tile ends the run of run totals before it: its carry is made of that tile's carry and total.
T first_carry(uint tile) {
    return tile == 0u ? T(0) : scanned_before(tile - 1u) + totals[tile - 1u];
}

// Run totals in staged[] become the carries of the runs; one invocation for each tile.
void scan_totals(uint tile, uint start) {
    T carry = first_carry(tile);
    T before = scanned_before(tile);
    T total = T(0);
    for (uint at = start; at < start + RUN; at++) {
        total += staged[at];
        staged[at] = carry;
        carry = before + total;
    }
}

void write_slice(uint block, uint slice) {
    uint start = block * BLOCK + slice * SLICE + brought_element();
    for (uint q = 0u; q < SLICE; q++) {
        uint i = start + brought_run(q) * RUN;
        if (i < n) {
            T value = staged[staged_at(brought_run(q), brought_element())];
            result[i] = first != 0u ? canon(value) : value;
        }
    }
}

void scan_runs(uint block, T carry) {
    T total = T(0);
    for (uint slice = 0u; slice < SLICES; slice++) {
        stage(block, slice);
        for (uint k = 0u; k < SLICE; k++) {
            uint at = staged_at(gl_LocalInvocationIndex, k);
            total += staged[at];
            staged[at] = carry + total;
        }
        barrier();
        write_slice(block, slice);
        barrier();
    }
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    uint me = gl_LocalInvocationIndex;
    for (uint block = gl_WorkGroupID.x; block * TILES < tiles; block += stride) {
        staged[me] = join_run(block);
        barrier();
        uint tile = block * TILES + me;
        if (me < TILES && tile < tiles) {
            scan_totals(tile, me * RUN);
        }
        barrier();
        T carry = staged[me];
        barrier();
        scan_runs(block, carry);
    }
}
