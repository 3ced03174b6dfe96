// One invocation for each run: through shared memory, or each by itself.
#include "tile64.glsl"

void scan_slice(inout T total, uint row) {
    for (uint k = row; k < row + SLICE; k += 4u) {
        TV v[4];
        [[unroll]] for (uint q = 0u; q < 4u; q++) {
            v[q] = staged[k + q];
        }
        [[unroll]] for (uint q = 0u; q < 4u; q++) {
            staged[k + q] = prefix(total, v[q]);
        }
    }
}

void scan_staged(uint tile, uint run) {
    TV mine[MINE];
    BRING_TILE(tile, mine)
    T total = T(0);
    [[unroll]] for (uint slice = 0u; slice < SLICES; slice++) {
        PUT_SLICE(slice, mine)
        barrier();
        if (run < RUN) {
            scan_slice(total, run * ROW);
        }
        barrier();
        [[unroll]] for (uint m = 0u; m < PART; m++) {
            mine[slice * PART + m] = staged[mine_staged(m)];
        }
        barrier();
    }
    if (run < RUN) {
        carries[run] = total;
    }
    barrier();
    if (run == 0u) {
        scan_totals(tile);
    }
    barrier();
    [[unroll]] for (uint m = 0u; m < MINE; m++) {
        uint j = mine_place(tile, m);
        if (j * ELEMS < n) {
            write(j, carries[mine_run(m)] + mine[m]);
        }
    }
}

void scan_direct(uint tile, uint run) {
    uint start = tile * TILE_VECTORS + run * RUN_VECTORS;
    T total = T(0);
    for (uint j = start; run < RUN && j < start + RUN_VECTORS && j * ELEMS < n; j++) {
        prefix(total, bring(j));
    }
    if (run < RUN) {
        carries[run] = total;
    }
    barrier();
    if (run == 0u) {
        scan_totals(tile);
    }
    barrier();
    total = T(0);
    for (uint j = start; run < RUN && j < start + RUN_VECTORS && j * ELEMS < n; j++) {
        write(j, carries[run] + prefix(total, bring(j)));
    }
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint tile = gl_WorkGroupID.x; tile < tiles; tile += stride) {
        if (STAGED != 0u) {
            scan_staged(tile, run_of(tile));
        } else {
            scan_direct(tile, run_of(tile));
        }
        barrier();
    }
}
