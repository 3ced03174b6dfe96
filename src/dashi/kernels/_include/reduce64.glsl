// Reduction in the canonical order tree64: n addends to one value per tile of 64 x 64, two levels of the tree at once.
// kernels/reductions.py plans the passes; a kernel's file includes this after it has defined
//     ACC                     the type that is reduced: T, a word, or a struct
//     ACC_BYTES               its size in shared memory: 4, 8 or 16
//     ACC none()              what is joined where the list has ended, and what every run starts from
//     ACC load(uint i)        addend i (i < n is certain)
//     ACC join(ACC a, ACC b)  a comes before b in the list
//     void store(uint i, ACC v)   the value of tile i
// and has the push constants n, tiles, stride (u32) and a workgroup of 256 x 1 x 1. A sum starts from +0, so that
// joining +0 after the end changes nothing; a maximum starts from the lowest key.

const uint RUN = 64u;
const uint STAGED_RUNS = 128u / ACC_BYTES;  // 8 KiB: small enough that many workgroups fit on a multiprocessor
const uint ROUNDS = RUN / STAGED_RUNS;

shared ACC staged[STAGED_RUNS * RUN];
shared ACC run_values[RUN];

// Where element k of a run lies: turned by the run's number, so that neither rows nor columns meet in one bank.
uint staged_at(uint run, uint k) {
    return run * RUN + (k ^ run);
}

// Elements of the runs of one round, read side by side by the whole workgroup.
void stage(uint start) {
    for (uint e = gl_LocalInvocationIndex; e < STAGED_RUNS * RUN; e += 256u) {
        uint i = start + e;
        ACC value = none();
        if (i < n) {
            value = load(i);
        }
        staged[staged_at(e / RUN, e % RUN)] = value;
    }
}

ACC join_run(uint run) {
    ACC total = none();
    for (uint k = 0u; k < RUN; k++) {
        total = join(total, staged[staged_at(run, k)]);
    }
    return total;
}

void reduce_tile(uint tile) {
    uint me = gl_LocalInvocationIndex;
    for (uint round = 0u; round < ROUNDS; round++) {
        stage(tile * (RUN * RUN) + round * (STAGED_RUNS * RUN));
        barrier();
        if (me < STAGED_RUNS) {
            run_values[round * STAGED_RUNS + me] = join_run(me);
        }
        barrier();
    }
    if (me == 0u) {
        ACC total = none();
        for (uint k = 0u; k < RUN; k++) {
            total = join(total, run_values[k]);
        }
        store(tile, total);
    }
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint tile = gl_WorkGroupID.x; tile < tiles; tile += stride) {
        reduce_tile(tile);
        barrier();
    }
}
