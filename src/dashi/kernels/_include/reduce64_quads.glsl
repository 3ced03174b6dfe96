// reduce64.glsl by quads: TILES tiles (a specialisation constant, at most 4) in each round of a workgroup.
#include "quads64.glsl"

const uint ROW = RUN + 1u;  // one more, so that tiles do not meet in a bank
const uint BATCH = 16u;

shared ACC run_values[4u * ROW];

#define TURN(JOIN, m, k)                                                     \
    {                                                                        \
        ACC made = JOIN(total, mine[m], (place + 4u * m) * ELEMS);           \
        total = SPREAD(made, k);                                             \
    }
#define TURNS(JOIN)                                  \
    [[unroll]] for (uint m = 0u; m < MINE; m++) {    \
        TURN(JOIN, m, 0u)                            \
        TURN(JOIN, m, 1u)                            \
        TURN(JOIN, m, 2u)                            \
        TURN(JOIN, m, 3u)                            \
    }

// The elements of the quad's run, joined in order.
ACC join_run(uint tile) {
    EV mine[MINE];
    BRING_MINE(tile, mine)
    uint place = mine_place(tile);
    ACC total = none();
    if (tile * TILE + TILE <= n) {
        TURNS(join_vector)
    } else {
        TURNS(join_end)
    }
    return total;
}

ACC join_runs(uint row) {
    ACC whole = none();
    for (uint r = row; r < row + RUN; r += BATCH) {
        [[unroll]] for (uint q = r; q < r + BATCH; q++) {
            whole = join(whole, run_values[q]);
        }
    }
    return whole;
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint block = gl_WorkGroupID.x; block * TILES < tiles; block += stride) {
        for (uint t = 0u; t < TILES; t++) {
            ACC total = join_run(block * TILES + t);
            if (lane() % 4u == 0u) {
                run_values[t * ROW + lane() / 4u] = total;
            }
        }
        barrier();
        uint tile = block * TILES + lane();
        if (lane() < TILES && tile < tiles) {
            store(tile, join_runs(lane() * ROW));
        }
        barrier();
    }
}
