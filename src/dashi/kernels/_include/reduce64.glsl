// Reduction in the canonical order tree64: n addends to one value per tile of 64 x 64, two levels of the tree at once.
// kernels/reductions.py plans the passes; a kernel's file includes this after it has defined
//     ACC                         the type that is reduced: T, a word, or a struct
//     ACC_BYTES                   its size in shared memory: 4, 8 or 16
//     ACC none()                  what every run starts from, and what is joined where the list has ended
//     ACC load(uint i)            addend i (i < n is certain)
//     ACC join(ACC a, ACC b)      a comes before b in the list
//     void store(uint i, ACC v)   the value of tile i
// and has the push constants n, tiles, stride (u32) and a workgroup of 128 x 1 x 1. A sum starts from +0, so that
// joining +0 after the end changes nothing; a maximum starts from the lowest key.

#include "stage64.glsl"

const uint TILES = RUNS / RUN;

void reduce_block(uint block) {
    uint me = gl_LocalInvocationIndex;
    staged[me] = join_run(block);
    barrier();
    uint tile = block * TILES + me;
    if (me < TILES && tile < tiles) {
        ACC total = none();
        for (uint k = 0u; k < RUN; k++) {
            total = join(total, staged[me * RUN + k]);
        }
        store(tile, total);
    }
    barrier();
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint block = gl_WorkGroupID.x; block * TILES < tiles; block += stride) {
        reduce_block(block);
    }
}
