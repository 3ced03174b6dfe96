// Tiles of 64 runs of 64 elements, worked through by quads: four invocations that stand side by side in a subgroup. A
// quad brings its run in vectors of 16 bytes, in turn, and works through it in order: each invocation has its turn with
// its own vector, then the others take over what it made. No shared memory, and no barrier.
// Needs the push constant n, a workgroup of 256 x 1 x 1, and EV and bring as in tile64.glsl.

const uint QUADS_LANES = 256u;
const uint MINE = RUN_VECTORS / 4u;

// How the driver numbers invocations does not matter: this is where a quad's four are neighbours.
uint lane() {
    return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
}

// The first vector that this invocation brings of a tile; the others follow at distances of 4.
uint mine_place(uint tile) {
    return tile * TILE_VECTORS + lane() / 4u * RUN_VECTORS + lane() % 4u;
}

// All that this invocation brings of a tile, in loads that do not wait for each other, nor for a test: past the end of
// the list they take its last vector, which nobody looks at.
#define BRING_MINE(tile, mine)                                                         \
    [[unroll]] for (uint m = 0u; m < MINE; m++) {                                      \
        mine[m] = bring(min(mine_place(tile) + 4u * m, (max(n, 1u) - 1u) / ELEMS));    \
    }
