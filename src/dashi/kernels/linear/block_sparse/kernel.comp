// result[c, j] = sum over the stored blocks t of block column c and the rows i of a block of
// x[places[t], i] blocks[t, i, j]; addend number (t - offsets[c]) * side + i of the list that tree64 sums. A workgroup
// takes one block column and LANES of its columns, DEPTH runs of 64 addends at a time.
const uint RUN = 64u;
const uint TILE = 4096u;
const uint BATCH = 8u;

shared T run_sums[RUN * LANES];

#include "not_a_number.glsl"

// A block column that is longer than declared, or that leaves the lists, has no sum.
bool find_column(uint c, out uint start, out uint beyond) {
    start = offsets[c];
    beyond = offsets[c + 1u];
    return start <= beyond && beyond <= count && beyond - start <= longest;
}

// The factor of a block whose row of blocks does not exist is NaN.
T factor(uint block, uint i) {
    uint row = places[block];
    T value = x[row < rows ? row * side + i : 0u];
    return row < rows ? canon(value) : not_a_number();
}

// The sum of addends `from` to `to` of column j, in order. Loads come in groups that do not wait for each other; past
// the end the last element is read again, and +0 added.
T run_sum(uint start, uint from, uint to, uint j) {
    T total = T(0);
    uint block = start + from / side;
    uint i = from % side;
    for (uint p = from; p < to; p += BATCH) {
        T value[BATCH];
        T left[BATCH];
        [[unroll]] for (uint q = 0u; q < BATCH; q++) {
            value[q] = blocks[(block * side + i) * side + j];
            left[q] = factor(block, i);
            bool more = p + q + 1u < to;
            bool turn = more && i + 1u == side;
            i = turn ? 0u : more ? i + 1u : i;
            block += turn ? 1u : 0u;
        }
        [[unroll]] for (uint q = 0u; q < BATCH; q++) {
            T product = mul(left[q], canon(value[q]));
            total += p + q < to ? product : T(0);
        }
    }
    return total;
}

T tile_sum(uint start, uint from, uint addends, uint j) {
    for (uint run = gl_LocalInvocationID.y; run < RUN; run += DEPTH) {
        uint first = min(from + run * RUN, addends);
        run_sums[run * LANES + gl_LocalInvocationID.x] = run_sum(start, first, min(first + RUN, addends), j);
    }
    barrier();
    T total = T(0);
    if (gl_LocalInvocationID.y == 0u) {
        for (uint run = 0u; run < RUN; run++) {
            total += run_sums[run * LANES + gl_LocalInvocationID.x];
        }
    }
    barrier();
    return total;
}

void sum_columns(uint c, uint j) {
    uint start, beyond;
    bool good = find_column(c, start, beyond);
    uint addends = good ? (beyond - start) * side : 0u;
    T total = T(0);
    for (uint from = 0u; from < addends; from += TILE) {
        total += tile_sum(start, from, addends, min(j, side - 1u));
    }
    if (gl_LocalInvocationID.y == 0u && j < side) {
        result[c * side + j] = good ? canon(total) : not_a_number();
    }
}

// The whole workgroup agrees on the block column, so it also agrees on the barriers.
void main() {
    for (uint block = first_block + gl_WorkGroupID.x; block < beyond_blocks; block += stride) {
        sum_columns(block / across, block % across * LANES + gl_LocalInvocationID.x);
    }
}
