// A workgroup takes one row at a time: half a tile of products in shared memory, each of 32 invocations sums a run of
// 64; the first adds the 64 run sums of a tile, and the tiles after that.
#include "entries.glsl"

const uint LOCAL = 256u;
const uint HALF = TILE / 2u;

shared T held[HALF + HALF / 32u];
shared T run_sums[RUN];

void sum_half(uint from, uint beyond, uint first_run) {
    uint me = gl_LocalInvocationIndex;
    for (uint i = me; i < HALF; i += LOCAL) {
        T value = T(0);
        if (from + i < beyond) {
            value = product(from + i);
        }
        held[i + i / 32u] = value;
    }
    barrier();
    if (me < HALF / RUN) {
        T total = T(0);
        for (uint i = me * RUN; i < me * RUN + RUN; i++) {
            total += held[i + i / 32u];
        }
        run_sums[first_run + me] = total;
    }
    barrier();
}

void sum_row(uint r) {
    uint start, beyond;
    bool good = find_row(r, start, beyond);
    beyond = good ? beyond : start;
    T total = T(0);
    for (uint from = start; from < beyond; from += TILE) {
        sum_half(from, beyond, 0u);
        sum_half(from + HALF, beyond, HALF / RUN);
        if (gl_LocalInvocationIndex == 0u) {
            T tile = T(0);
            for (uint i = 0u; i < RUN; i++) {
                tile += run_sums[i];
            }
            total += tile;
        }
        barrier();
    }
    if (gl_LocalInvocationIndex == 0u) {
        result[r] = good ? canon(total) : not_a_number();
    }
}

// The whole workgroup agrees on the row, so it also agrees on the barriers.
void main() {
    for (uint r = first_block + gl_WorkGroupID.x; r < blocks; r += stride) {
        sum_row(r);
    }
}
