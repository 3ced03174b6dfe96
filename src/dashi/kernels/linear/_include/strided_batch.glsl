// Where the matrices of a batch begin, in vectors V, and where its results go.
#include "batch_place.glsl"

uint a_from;
uint b_from;
uint batch;

// Goes to the batch that a tile belongs to; gives the tile's number within.
uint enter_batch(uint tile) {
    batch = tile / per_batch;
    Place at = place_of(batch);
    a_from = a_start + at.z0 * a_batch + at.z1 * A_Z1 + at.z2 * A_Z2 + at.z3 * A_Z3;
    b_from = b_start + at.z0 * b_batch + at.z1 * B_Z1 + at.z2 * B_Z2 + at.z3 * B_Z3;
    return tile % per_batch;
}

// What becomes of four sums side by side, at the edge where the matrix has ended. All that it needs is read before any
// of them is stored, so that it is waited for once.
T4 finish_four(uint row, uint column, T4 sums) {
    Place at = place_of(batch);
    at.row = min(row, m - 1u);
    uint from = (batch * m + at.row) * n;
    if (fresh == 0u) {
        [[unroll]] for (uint e = 0u; e < 4u; e++) {
            sums[e] = result[from + min(column + e, n - 1u)] + sums[e];
        }
    }
    if (last != 0u) {
        [[unroll]] for (uint e = 0u; e < 4u; e++) {
            at.column = min(column + e, n - 1u);
            sums[e] = canon(finish(sums[e], at));
        }
    }
    return sums;
}

void store_four(uint row, uint column, T4 finished) {
    uint i = (batch * m + row) * n + column;
    [[unroll]] for (uint e = 0u; e < 4u; e++) {
        if (row < m && column + e < n) {
            result[i + e] = finished[e];
        }
    }
}

void store_one(uint row, uint column, T v) {
    if (row < m && column < n) {
        Place at = place_of(batch);
        at.row = row;
        at.column = column;
        store_sum((batch * m + row) * n + column, v, at);
    }
}
