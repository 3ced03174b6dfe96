// Many steps of one state in one workgroup: the state lies in shared memory, twice, and every output is made of sums
// over lists of at most 64 runs of 64 entries. EACH lanes share the runs of an output; RUNS is the most that one has;
// GROUPS = LOCAL / EACH outputs are made at a time. A kernel's file defines, besides what list_sum.glsl needs,
//     T run_of(uint out_at, uint run)      the sum of a run, +0 past the end of its list
//     T make(uint out_at, uint column)     the output; `runs_sum(column, first, count)` adds sums of runs in order
// and reads the state by `state_value(i)`.

const uint GROUPS = LOCAL / EACH;

shared T held[2u * WIDTH];
shared T slots[GROUPS * RUNS];

uint origin;  // of the present state in `held`

T state_value(uint i) {
    return held[origin + i];
}

T run_of(uint out_at, uint run);
T make(uint out_at, uint column);

// Sums of runs are the addends of the next level: at most 64, so one run more.
T runs_sum(uint column, uint first, uint count) {
    T total = T(0);
    for (uint run = first; run < first + count; run++) {
        total += slots[run * GROUPS + column];
    }
    return total;
}

// Outputs `first` and those after it, one for each column of lanes.
void make_outputs(uint first, uint target) {
    uint column = gl_LocalInvocationIndex % GROUPS;
    uint lane = gl_LocalInvocationIndex / GROUPS;
    uint out_at = first + column;
    bool live = out_at < width;
    for (uint run = lane; run < RUNS; run += EACH) {
        slots[run * GROUPS + column] = live ? run_of(out_at, run) : T(0);
    }
    if (EACH > 1u) {
        barrier();
    }
    if (live && lane == 0u) {
        held[target + out_at] = canon(make(out_at, column));
    }
    if (EACH > 1u) {
        barrier();
    }
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    uint me = gl_LocalInvocationIndex;
    uint base = (first_state + gl_WorkGroupID.x) * width;
    for (uint i = me; i < width; i += LOCAL) {
        held[i] = canon(z[base + i]);
    }
    barrier();
    origin = 0u;
    for (uint t = 0u; t < steps; t++) {
        uint target = WIDTH - origin;
        for (uint first = 0u; first < width; first += GROUPS) {
            make_outputs(first, target);
        }
        barrier();
        origin = target;
    }
    for (uint i = me; i < width; i += LOCAL) {
        result[base + i] = held[origin + i];
    }
}
