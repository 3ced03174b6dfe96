// Prefix sums of every tile of 64 x 64: within each run from +0, plus the carry of the run, which is the scan, by the
// same rule, of the run totals before it. `totals` holds the tiles' totals and `scanned` their scan, if there are
// several tiles.
#include "addend.glsl"
#include "stage64.glsl"

shared T run_totals[STAGED_RUNS];
shared T carries[STAGED_RUNS];

// Turns a staged run into its prefix sums; gives their last.
T scan_run(uint run) {
    T total = T(0);
    for (uint k = 0u; k < RUN; k++) {
        uint at = staged_at(run, k);
        total += staged[at];
        staged[at] = total;
    }
    return total;
}

T scanned_before(uint tile) {
    return tile == 0u ? T(0) : scanned[tile - 1u];
}

// The first run of a tile ends the run of run totals before it: its carry is made of that tile's carry and total.
T first_carry(uint tile) {
    return tile == 0u ? T(0) : scanned_before(tile - 1u) + totals[tile - 1u];
}

void write_runs(uint start) {
    for (uint e = gl_LocalInvocationIndex; e < STAGED_RUNS * RUN; e += 256u) {
        uint i = start + e;
        if (i < n) {
            T value = carries[e / RUN] + staged[staged_at(e / RUN, e % RUN)];
            result[i] = first != 0u ? canon(value) : value;
        }
    }
}

void scan_tile(uint tile) {
    uint me = gl_LocalInvocationIndex;
    T carry = first_carry(tile);
    T before = scanned_before(tile);
    T total = T(0);
    for (uint round = 0u; round < ROUNDS; round++) {
        uint start = tile * (RUN * RUN) + round * (STAGED_RUNS * RUN);
        stage(start);
        barrier();
        if (me < STAGED_RUNS) {
            run_totals[me] = scan_run(me);
        }
        barrier();
        if (me == 0u) {
            for (uint run = 0u; run < STAGED_RUNS; run++) {
                carries[run] = carry;
                total += run_totals[run];
                carry = before + total;
            }
        }
        barrier();
        write_runs(start);
        barrier();
    }
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint tile = gl_WorkGroupID.x; tile < tiles; tile += stride) {
        scan_tile(tile);
    }
}
