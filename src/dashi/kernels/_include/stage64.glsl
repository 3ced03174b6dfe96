// Runs of 64 elements, worked on by one invocation each while the whole workgroup reads them side by side. A block is
// 128 runs, two tiles of 64 runs; it goes through shared memory in slices of a few elements of every run.
// Needs ACC, ACC_BYTES, none(), load(i) and join(a, b) as reduce64.glsl explains them, the push constant n, and a
// workgroup of 128 x 1 x 1.

const uint RUN = 64u;
const uint RUNS = 128u;
const uint BLOCK = RUNS * RUN;
const uint SLICE = 64u / ACC_BYTES;  // 8 KiB for all runs
const uint SLICES = RUN / SLICE;
const uint APART = RUNS / SLICE;  // an invocation brings the same element of every APART-th run

shared ACC staged[RUNS * SLICE];

// Where element k of a run lies: turned by the run's number, so that neither runs nor elements meet in one bank.
uint staged_at(uint run, uint k) {
    return run * SLICE + (k ^ ((run >> 1) & (SLICE - 1u)));
}

uint brought_run(uint q) {
    return q * APART + gl_LocalInvocationIndex / SLICE;
}

uint brought_element() {
    return gl_LocalInvocationIndex % SLICE;
}

// What this invocation brings for one slice. The loads do not wait for each other: there are no tests between them
// unless the list ends in this block.
void fetch(uint block, uint slice, out ACC brought[SLICE]) {
    uint start = block * BLOCK + slice * SLICE + brought_element();
    if (block * BLOCK + BLOCK <= n) {
        for (uint q = 0u; q < SLICE; q++) {
            brought[q] = load(start + brought_run(q) * RUN);
        }
    } else {
        for (uint q = 0u; q < SLICE; q++) {
            uint i = start + brought_run(q) * RUN;
            brought[q] = none();
            if (i < n) {
                brought[q] = load(i);
            }
        }
    }
}

// Brings a slice of every run into shared memory. All invocations call it together.
void stage(uint block, uint slice) {
    ACC brought[SLICE];
    fetch(block, slice, brought);
    for (uint q = 0u; q < SLICE; q++) {
        staged[staged_at(brought_run(q), brought_element())] = brought[q];
    }
    barrier();
}

// The elements of this invocation's run, joined in order. All invocations call it together.
ACC join_run(uint block) {
    ACC total = none();
    for (uint slice = 0u; slice < SLICES; slice++) {
        stage(block, slice);
        for (uint k = 0u; k < SLICE; k++) {
            total = join(total, staged[staged_at(gl_LocalInvocationIndex, k)]);
        }
        barrier();
    }
    return total;
}
