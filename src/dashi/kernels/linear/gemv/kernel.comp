// Adds up columns of a list of rows, in the canonical order: one level of the tree (runs of 64 rows) or, with `whole`,
// two levels (64 runs). In the first pass the addends are products x[i] A[i, j], later the sums of the pass before.
// A workgroup is 32 columns wide, so that rows are read side by side, and 8 runs deep.

const uint RUN = 64u;
const uint WIDTH = 32u;
const uint DEPTH = 8u;
const uint BATCH = 16u;

shared T run_sums[RUN * WIDTH];

T addend(uint i, T value) {
    T product = mul(canon(x[i]), canon(value));
    return first != 0u ? product : value;
}

// The sum of a run in column j. Loads come in batches that do not wait for each other; the last, short run has none.
T run_sum(uint run, uint j) {
    uint start = run * RUN;
    T total = T(0);
    if (start + RUN <= rows) {
        for (uint i = start; i < start + RUN; i += BATCH) {
            T values[BATCH];
            for (uint q = 0u; q < BATCH; q++) {
                values[q] = A[(i + q) * n + j];
            }
            for (uint q = 0u; q < BATCH; q++) {
                total += addend(i + q, values[q]);
            }
        }
    } else {
        for (uint i = start; i < rows; i++) {
            total += addend(i, A[i * n + j]);
        }
    }
    return total;
}

void write(uint i, uint j, T value) {
    if (i < made && j < n) {
        result[i * n + j] = last != 0u ? canon(value) : value;
    }
}

void sum_runs(uint block, uint j) {
    for (uint run = gl_LocalInvocationID.y; run < RUN; run += DEPTH) {
        run_sums[run * WIDTH + gl_LocalInvocationID.x] = run_sum(block * RUN + run, min(j, n - 1u));
    }
    barrier();
    if (gl_LocalInvocationID.y == 0u) {
        T total = T(0);
        for (uint run = 0u; run < RUN; run++) {
            total += run_sums[run * WIDTH + gl_LocalInvocationID.x];
        }
        write(block, j, total);
    }
    barrier();
}

// Every invocation of a workgroup makes the same trips of this loop, so all of them reach every barrier.
void main() {
    for (uint block = first_block + gl_WorkGroupID.x; block < blocks; block += stride) {
        uint j = block % across * WIDTH + gl_LocalInvocationID.x;
        if (whole != 0u) {
            sum_runs(block / across, j);
        } else {
            uint run = block / across * DEPTH + gl_LocalInvocationID.y;
            write(run, j, run_sum(run, min(j, n - 1u)));
        }
    }
}
