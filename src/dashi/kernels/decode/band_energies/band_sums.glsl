// Sums of 64 x 64 addends in the order tree64, an invocation for every run; the shader defines T addend(uint i).
const uint RUN = 64u;
const uint BATCH = 8u;

shared T runs[RUN];

T addend(uint i);

// Addends that are sure to be there come in batches that do not wait for each other.
T run_sum(uint first, uint beyond) {
    T sum = T(0);
    if (first + RUN <= beyond) {
        for (uint i = first; i < first + RUN; i += BATCH) {
            T some[BATCH];
            [[unroll]] for (uint q = 0u; q < BATCH; q++) {
                some[q] = addend(i + q);
            }
            [[unroll]] for (uint q = 0u; q < BATCH; q++) {
                sum += some[q];
            }
        }
    } else {
        for (uint i = first; i < beyond; i++) {
            sum += addend(i);
        }
    }
    return sum;
}

// The sum of the tile that starts at `first`, for the first invocation.
T tile_sum(uint first, uint beyond) {
    uint lane = gl_LocalInvocationIndex;
    runs[lane] = run_sum(first + lane * RUN, beyond);
    barrier();
    T sum = T(0);
    if (lane == 0u) {
        for (uint r = 0u; r < RUN; r++) {
            sum += runs[r];
        }
    }
    barrier();
    return sum;
}
