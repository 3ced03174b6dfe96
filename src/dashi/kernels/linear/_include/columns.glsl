// Adds up the columns of x[i] A[i, j], or of sums that a pass before has left, in the canonical order tree64.
// kernels/columns.py plans the passes. A pass makes one row of every run of 64 rows (`depth` 1), of 64 such runs
// (depth 2, a tile), or of up to 64 tiles (depth 3). The matrix is read in vectors of 16 bytes, as V, where its rows
// are a multiple of that; elsewhere V is T. A workgroup is LANES vectors wide and DEPTH runs deep; the LANES vectors of
// a row lie side by side, and HELD runs are all that a tile of this matrix has. Batches of matrices and vectors lie one
// after another; with GROUPED each vector has the matrix of its group, of which there are `groups`, and without one is 0.

#include "lanes.glsl"

const uint RUN = 64u;

#ifndef DIRECT
shared V run_sums[HELD * LANES];
#endif

V cleaned(V v) {
    return EACH_LANE(canon, v);
}

V products(T a, V v) {
#if V_LANES == 4
    return V(mul(a, v.x), mul(a, v.y), mul(a, v.z), mul(a, v.w));
#elif V_LANES == 2
    return V(mul(a, v.x), mul(a, v.y));
#else
    return mul(a, v);
#endif
}

V addend(uint i, V value) {
    return first != 0u ? products(canon(x[i]), cleaned(value)) : value;
}

// The sum of a run in column j; x_at and a_at are where the batch's vector and matrix begin. Loads come in groups that
// do not wait for each other; the last, short run has none. A run past the end sums to +0, which adds nothing.
V run_sum(uint run, uint j, uint x_at, uint a_at) {
    uint start = run * RUN;
    uint at = a_at + start * pitch + j;
    V total = V(0);
    if (start + RUN <= rows) {
        for (uint i = start; i < start + RUN; i += BATCH) {
            V values[BATCH];
            [[unroll]] for (uint q = 0u; q < BATCH; q++) {
                values[q] = A[at + q * pitch];
            }
            [[unroll]] for (uint q = 0u; q < BATCH; q++) {
                total += addend(x_at + i + q, values[q]);
            }
            at += BATCH * pitch;
        }
    } else {
        for (uint i = start; i < rows; i++) {
            total += addend(x_at + i, A[at]);
            at += pitch;
        }
    }
    return total;
}

#ifdef DIRECT
V tile_sum(uint tile, uint j, uint x_at, uint a_at) {
    V total = V(0);
    for (uint run = 0u; run < HELD; run++) {
        total += run_sum(tile * RUN + run, j, x_at, a_at);
    }
    return total;
}
#else
// The sum of a tile, in the invocations with y = 0. All invocations of the workgroup call it together.
V tile_sum(uint tile, uint j, uint x_at, uint a_at) {
    for (uint run = gl_LocalInvocationID.y; run < HELD; run += DEPTH) {
        run_sums[run * LANES + gl_LocalInvocationID.x] = run_sum(tile * RUN + run, j, x_at, a_at);
    }
    barrier();
    V total = V(0);
    if (gl_LocalInvocationID.y == 0u) {
        for (uint run = 0u; run < HELD; run++) {
            total += run_sums[run * LANES + gl_LocalInvocationID.x];
        }
    }
    barrier();
    return total;
}
#endif

#ifdef GROUPED
#define MATRIX(batch) (first != 0u ? min(group[batch], groups - 1u) : batch)
#define FINISHED(batch, value) (group[batch] < groups ? cleaned(value) : V(0))
#else
#define MATRIX(batch) batch
#define FINISHED(batch, value) cleaned(value)
#endif

void write(uint row, uint j, uint batch, V value) {
    if (row < made && j < pitch) {
        result[(batch * made + row) * pitch + j] = last != 0u ? FINISHED(batch, value) : value;
    }
}

void sum_block(uint block, uint batch) {
    uint j = block % across * LANES + gl_LocalInvocationID.x;
    uint row = block / across;
    uint near = min(j, pitch - 1u);  // past the last column the edge is read, and nothing written
    uint x_at = batch * rows;
    uint a_at = MATRIX(batch) * rows * pitch;
    if (depth == 1u) {
        row = row * DEPTH + gl_LocalInvocationID.y;
        write(row, j, batch, run_sum(row, near, x_at, a_at));
    } else if (depth == 2u) {
        V total = tile_sum(row, near, x_at, a_at);
        if (gl_LocalInvocationID.y == 0u) {
            write(row, j, batch, total);
        }
    } else {
        V total = V(0);
        uint tiles = (rows + RUN * RUN - 1u) / (RUN * RUN);
        for (uint tile = row * RUN; tile < min((row + 1u) * RUN, tiles); tile++) {
            total += tile_sum(tile, near, x_at, a_at);
        }
        if (gl_LocalInvocationID.y == 0u) {
            write(row, j, batch, total);
        }
    }
}

// Every invocation of a workgroup makes the same trips of these loops, so all of them reach every barrier.
void main() {
    for (uint block = first_block + gl_WorkGroupID.x; block < blocks; block += stride) {
        sum_block(block % per_batch, block / per_batch);
    }
}
