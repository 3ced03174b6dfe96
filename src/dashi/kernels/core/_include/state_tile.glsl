// One tile of 64 runs of 64 values per round: all invocations bring it side by side, and take the extremes of what
// they bring; then each adds one of the four sums over one run, through shared memory, in slices of every run.
#include "state_values.glsl"

const uint RUN = 64u;
const uint TILE = RUN * RUN;
const uint SLICE = T_IS_F64 != 0 ? 8u : 16u;
const uint ROW = SLICE + 1u;  // one more, so that runs do not meet in a bank
const uint PART = RUN * SLICE / LANES;
const uint MINE = TILE / LANES;
const uint SUMS = 4u * RUN;

shared T staged_before[RUN * ROW];
shared T staged_after[RUN * ROW];
shared T run_sums[SUMS];
shared KEY tops[4][LANES];
shared uint odd;
shared uint first_odd;

uint place_of(uint tile, uint slice, uint m) {
    uint item = m * LANES + gl_LocalInvocationIndex;
    return tile * TILE + item / SLICE * RUN + slice * SLICE + item % SLICE;
}

// The extremes of the workgroup in the first invocation; all call it.
void share_extremes(inout ACC mine) {
    uint me = gl_LocalInvocationIndex;
    for (uint q = 0u; q < 4u; q++) {
        tops[q][me] = mine.tops[q];
    }
    if (mine.odd != 0u) {
        atomicAdd(odd, mine.odd);
        atomicMin(first_odd, mine.first);
    }
    barrier();
    for (uint width = LANES / 2u; width > 0u; width /= 2u) {
        if (me < width) {
            for (uint q = 0u; q < 4u; q++) {
                tops[q][me] = above(tops[q][me], tops[q][me + width]);
            }
        }
        barrier();
    }
    for (uint q = 0u; q < 4u; q++) {
        mine.tops[q] = tops[q][0];
    }
    mine.odd = odd;
    mine.first = first_odd;
}

// Values before and after of this invocation's part of the tile, in loads that do not wait for each other; past the end
// the last value is read again, and counts as +0 in sums.
void measure(uint tile) {
    uint me = gl_LocalInvocationIndex;
    T here[MINE];
    T there[MINE];
    uint end = max(n, 1u) - 1u;
    [[unroll]] for (uint m = 0u; m < MINE; m++) {
        uint place = min(place_of(tile, m / PART, m % PART), end);
        here[m] = before[place];
        there[m] = after[place];
    }
    if (me == 0u) {
        odd = 0u;
        first_odd = NONE;
    }
    ACC mine = none();
    [[unroll]] for (uint m = 0u; m < MINE; m++) {
        uint place = place_of(tile, m / PART, m % PART);
        here[m] = place < n ? canon(here[m]) : T(0);
        there[m] = place < n ? canon(there[m]) : T(0);
        if (place < n) {
            take_extremes(mine, here[m], there[m], place);
        }
    }
    barrier();
    share_extremes(mine);
    T total[SUMS / LANES];
    for (uint k = 0u; k < SUMS / LANES; k++) {
        total[k] = T(0);
    }
    [[unroll]] for (uint slice = 0u; slice < RUN / SLICE; slice++) {
        [[unroll]] for (uint m = 0u; m < PART; m++) {
            uint item = m * LANES + me;
            staged_before[item / SLICE * ROW + item % SLICE] = here[slice * PART + m];
            staged_after[item / SLICE * ROW + item % SLICE] = there[slice * PART + m];
        }
        barrier();
        for (uint k = 0u; k < SUMS / LANES; k++) {
            uint row = (k * LANES + me) % RUN * ROW;
            for (uint i = row; i < row + SLICE; i++) {
                total[k] += addend((k * LANES + me) / RUN, staged_before[i], staged_after[i]);
            }
        }
        barrier();
    }
    for (uint k = 0u; k < SUMS / LANES; k++) {
        run_sums[k * LANES + me] = total[k];
    }
    barrier();
    if (me < 4u) {
        T whole = T(0);
        for (uint run = 0u; run < RUN; run++) {
            whole += run_sums[me * RUN + run];
        }
        run_sums[me * RUN] = whole;
    }
    barrier();
    if (me == 0u) {
        for (uint q = 0u; q < 4u; q++) {
            mine.sums[q] = run_sums[q * RUN];
        }
        store(tile, mine);
    }
    barrier();
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint tile = gl_WorkGroupID.x; tile < tiles; tile += stride) {
        measure(tile);
    }
}
