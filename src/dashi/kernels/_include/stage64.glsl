// Runs of 64 elements in shared memory: read from the list side by side, then worked on run by run, one invocation
// each. Needs ACC, ACC_BYTES, none() and load(i) as reduce64.glsl explains them, the push constant n, and a workgroup of
// 256 x 1 x 1. A tile is 64 runs; it goes through shared memory in ROUNDS rounds of STAGED_RUNS runs.

const uint RUN = 64u;
const uint STAGED_RUNS = 128u / ACC_BYTES;  // 8 KiB: small enough that many workgroups fit on a multiprocessor
const uint ROUNDS = RUN / STAGED_RUNS;

shared ACC staged[STAGED_RUNS * RUN];

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
