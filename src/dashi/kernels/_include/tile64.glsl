// Tiles of 64 runs of 64 elements, one after another in a buffer that is read in vectors of 16 bytes. A workgroup of
// LANES invocations brings a tile side by side; then one invocation per run works through its run in order. In between
// lies shared memory, in slices of 16 vectors of every run. Where STAGED is 0 each invocation reads its run by itself.
// Needs the push constant n, the specialisation constants LANES (a multiple of 64) and STAGED, and
//     EV                  the vector that goes through shared memory: 16 bytes, ELEMS elements
//     EV bring(uint j)    vector j of the list (the last may reach past n: what is there means nothing)

const uint SLICE = 16u;
const uint SLICES = RUN_VECTORS / SLICE;
const uint ROW = SLICE + 1u;  // one more, so that runs do not meet in a bank
const uint PART = RUN * SLICE / LANES;  // vectors of a slice that one invocation brings
const uint MINE = SLICES * PART;

shared EV staged[RUN * ROW];

// The run of the tile that this invocation works through, if it is below RUN. Tiles take turns, so that the work does
// not always fall on the same part of a processor.
uint run_of(uint tile) {
    return (gl_LocalInvocationIndex + tile % (LANES / RUN) * RUN) % LANES;
}

// Vector m of those that this invocation brings: its run, its place in the run's slice, its place in the list.
uint mine_run(uint m) {
    return (m % PART * LANES + gl_LocalInvocationIndex) / SLICE;
}

uint mine_staged(uint m) {
    return mine_run(m) * ROW + gl_LocalInvocationIndex % SLICE;
}

uint mine_place(uint tile, uint m) {
    return tile * TILE_VECTORS + mine_run(m) * RUN_VECTORS + m / PART * SLICE + gl_LocalInvocationIndex % SLICE;
}

// All that this invocation brings of a tile, in loads that do not wait for each other, nor for a test: past the end of
// the list they take its last vector, which nobody looks at.
#define BRING_TILE(tile, mine)                                                    \
    [[unroll]] for (uint m = 0u; m < MINE; m++) {                                 \
        mine[m] = bring(min(mine_place(tile, m), (max(n, 1u) - 1u) / ELEMS));     \
    }

#define PUT_SLICE(slice, mine)                                                    \
    [[unroll]] for (uint m = 0u; m < PART; m++) {                                 \
        staged[mine_staged(m)] = mine[slice * PART + m];                          \
    }
