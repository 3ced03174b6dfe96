// result (m, n) = x (m, k) W^T over runs of 64 in [first_run, runs), at most 64 of them, in the order tree64; W has n
// packed rows. kernels/packed/_products.py plans it. A workgroup has ROWS rows of x and COLUMNS rows of W; TEAMS runs are
// under way at a time, an invocation adds up one of them for ROWS rows, and the run sums are added in their order.
// Before this file:
//     WORDS, RUNS                           words of a tile, and runs that it holds
//     void begin_run()                      reads scales
//     void octet(uint i, out vec4, out vec4)   weights 8 i to 8 i + 7 of the run
const uint RUN = 64u;
const uint LANES = COLUMNS * TEAMS;
const uint QUADS = RUN / 4u;
const uint BROUGHT = ROWS * TEAMS * QUADS / LANES;
const uint RESULTS = ROWS * COLUMNS;
const uint HELD = (RESULTS + LANES - 1u) / LANES;  // results of an invocation

shared vec4 staged[ROWS * TEAMS * QUADS];
shared float run_sums[ROWS * TEAMS * COLUMNS];

float x_at(uint row, uint i) {
    return row < m && i < k ? canon(x[row * k + i]) : 0.0;
}

// Brings TEAMS runs of x, canonical; past the end of a row there are zeros.
void stage(uint top, uint run) {
    [[unroll]] for (uint q = 0u; q < BROUGHT; q++) {
        uint place = q * LANES + gl_LocalInvocationIndex;
        uint row = top + place / (TEAMS * QUADS);
        uint i = run * RUN + place % (TEAMS * QUADS) * 4u;
        staged[place] = vec4(x_at(row, i), x_at(row, i + 1u), x_at(row, i + 2u), x_at(row, i + 3u));
    }
}

float add4(float total, vec4 p, vec4 w) {
    total += mul(p.x, w.x);
    total += mul(p.y, w.y);
    total += mul(p.z, w.z);
    return total + mul(p.w, w.w);
}

void add_run(uint team, uint lane) {
    float total[ROWS];
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        total[r] = 0.0;
    }
    begin_run();
    for (uint i = 0u; i < RUN / 8u; i++) {
        vec4 low, high;
        octet(i, low, high);
        [[unroll]] for (uint r = 0u; r < ROWS; r++) {
            uint place = (r * TEAMS + team) * QUADS + 2u * i;
            total[r] = add4(add4(total[r], staged[place], low), staged[place + 1u], high);
        }
    }
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        run_sums[(r * TEAMS + team) * COLUMNS + lane] = total[r];
    }
}

void multiply(uint top, uint left) {
    uint lane = gl_LocalInvocationIndex % COLUMNS;
    uint team = gl_LocalInvocationIndex / COLUMNS;
    float total[HELD];
    [[unroll]] for (uint q = 0u; q < HELD; q++) {
        total[q] = 0.0;
    }
    for (uint run = first_run; run < runs; run += TEAMS) {
        barrier();
        stage(top, run);
        barrier();
        if (run + team < runs) {
            first_word = (run + team) / RUNS * WORDS * n + min(left + lane, n - 1u);
            quarter = (run + team) % RUNS;
            add_run(team, lane);
        }
        barrier();
        [[unroll]] for (uint q = 0u; q < HELD; q++) {
            uint i = min(q * LANES + gl_LocalInvocationIndex, RESULTS - 1u);
            for (uint t = 0u; t < min(TEAMS, runs - run); t++) {
                total[q] += run_sums[(i / COLUMNS * TEAMS + t) * COLUMNS + i % COLUMNS];
            }
        }
    }
    [[unroll]] for (uint q = 0u; q < HELD; q++) {
        uint i = q * LANES + gl_LocalInvocationIndex;
        uint row = top + i / COLUMNS;
        uint column = left + i % COLUMNS;
        if (i < RESULTS && row < m && column < n) {
            uint place = row * n + column;
            float sum = fresh != 0u ? total[q] : result[place] + total[q];
            result[place] = last != 0u ? canon(sum) : sum;
        }
    }
}

void main() {
    for (uint tile = first_tile + gl_WorkGroupID.x; tile < tiles; tile += stride) {
        // Rows of x follow each other, so that the second reads W from a cache.
        multiply(tile % down * ROWS, tile / down * COLUMNS);
    }
}
