// reduce64.glsl with one invocation for each run: through shared memory, or each by itself (tile64.glsl).
#include "tile64.glsl"

shared ACC run_values[RUN];

ACC join_direct(uint first) {
    ACC total = none();
    if (first + RUN <= n) {
        for (uint i = first; i < first + RUN; i += ELEMS) {
            total = join_vector(total, bring(i / ELEMS), i);
        }
    } else {
        for (uint i = first; i < n && i < first + RUN; i += ELEMS) {
            total = join_end(total, bring(i / ELEMS), i);
        }
    }
    return total;
}

ACC join_slice(ACC total, uint row, uint first, bool whole) {
    if (whole) {
        for (uint k = 0u; k < SLICE; k += 4u) {
            [[unroll]] for (uint q = k; q < k + 4u; q++) {
                total = join_vector(total, staged[row + q], first + q * ELEMS);
            }
        }
    } else {
        for (uint k = 0u; k < SLICE; k++) {
            total = join_end(total, staged[row + k], first + k * ELEMS);
        }
    }
    return total;
}

// The elements of a run, joined in order, in the invocations whose run is below RUN. All call it together.
ACC join_staged(uint tile, uint run) {
    EV mine[MINE];
    BRING_TILE(tile, mine)
    ACC total = none();
    [[unroll]] for (uint slice = 0u; slice < SLICES; slice++) {
        PUT_SLICE(slice, mine)
        barrier();
        if (run < RUN) {
            uint first = tile * TILE + run * RUN + slice * SLICE * ELEMS;
            total = join_slice(total, run * ROW, first, tile * TILE + TILE <= n);
        }
        barrier();
    }
    return total;
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint tile = gl_WorkGroupID.x; tile < tiles; tile += stride) {
        uint run = run_of(tile);
        ACC total = none();
        if (STAGED != 0u) {
            total = join_staged(tile, run);
        } else if (run < RUN) {
            total = join_direct(tile * TILE + run * RUN);
        }
        if (run < RUN) {
            run_values[run] = total;
        }
        barrier();
        if (run == 0u) {
            ACC whole = none();
            for (uint r = 0u; r < RUN; r++) {
                whole = join(whole, run_values[r]);
            }
            store(tile, whole);
        }
        barrier();
    }
}
