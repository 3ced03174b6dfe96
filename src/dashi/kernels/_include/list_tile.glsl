// One step of many states whose outputs lie side by side in memory: a workgroup makes GROUPS outputs at a time, EACH
// lanes share the runs of an output. HELD is how many runs of 64 entries lie in shared memory at once: 64, or all where
// there are fewer; `tiles` times as many are the most of any output. A kernel's file defines, besides what list_sum.glsl
// needs,
//     T run_of(uint out_at, uint run)      the sum of a run, +0 past the end of its list
//     T make(uint out_at, T total)         the output, of the sum of its list
// and reads the state by `state_value(i)`.

const uint GROUPS = LOCAL / EACH;

shared T slots[GROUPS * HELD];

uint origin;  // of the state in z

T state_value(uint i) {
    return canon(z[origin + i]);
}

T run_of(uint out_at, uint run);
T make(uint out_at, T total);

// The sum of 64 runs, in the first lane of an output.
T tile_sum(uint out_at, bool live, uint tile, uint column, uint lane) {
    for (uint run = lane; run < HELD; run += EACH) {
        slots[run * GROUPS + column] = live ? run_of(out_at, tile * RUN + run) : T(0);
    }
    barrier();
    T total = T(0);
    for (uint run = 0u; lane == 0u && run < HELD; run++) {
        total += slots[run * GROUPS + column];
    }
    barrier();
    return total;
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    uint column = gl_LocalInvocationIndex % GROUPS;
    uint lane = gl_LocalInvocationIndex / GROUPS;
    for (uint item = first_item + gl_WorkGroupID.x; item < items; item += stride) {
        origin = item / across * width;
        uint out_at = item % across * GROUPS + column;
        bool live = out_at < width;
        T total = T(0);
        for (uint tile = 0u; tile < tiles; tile++) {
            total += tile_sum(out_at, live, tile, column, lane);
        }
        if (live && lane == 0u) {
            result[origin + out_at] = canon(make(out_at, total));
        }
    }
}
