// A later pass of a reduction in the canonical order tree64: the values of n tiles to one value per tile of 64 x 64 of
// them. There are few, so each invocation reads its run of 64 by itself. A kernel's file includes this after it has
// defined ACC, none, join and store as reduce64.glsl explains them, and
//     ACC load(uint i)    value i (i < n is certain)
// and has the push constants n, tiles and stride (u32), and a workgroup of 64 x 1 x 1.

const uint RUN = 64u;
const uint BATCH = 8u;

shared ACC run_values[RUN];

// Loads come in batches that do not wait for each other.
ACC join_run(uint first) {
    ACC total = none();
    if (first + RUN <= n) {
        for (uint i = first; i < first + RUN; i += BATCH) {
            ACC values[BATCH];
            [[unroll]] for (uint q = 0u; q < BATCH; q++) {
                values[q] = load(i + q);
            }
            [[unroll]] for (uint q = 0u; q < BATCH; q++) {
                total = join(total, values[q]);
            }
        }
    } else {
        for (uint i = first; i < n && i < first + RUN; i++) {
            total = join(total, load(i));
        }
    }
    return total;
}

void main() {
    uint run = gl_LocalInvocationIndex;
    for (uint tile = gl_WorkGroupID.x; tile < tiles; tile += stride) {
        run_values[run] = join_run((tile * RUN + run) * RUN);
        barrier();
        if (run == 0u) {
            ACC whole = none();
            for (uint r = 0u; r < RUN; r += BATCH) {
                [[unroll]] for (uint q = r; q < r + BATCH; q++) {
                    whole = join(whole, run_values[q]);
                }
            }
            store(tile, whole);
        }
        barrier();
    }
}
