// result (m, n) = x (m, k) W^T over runs of 64 in [first_run, runs), at most 64 of them, in the order tree64; W has n
// packed rows. kernels/packed/_products.py plans it. A workgroup has ROWS rows of x and COLUMNS rows of W; TEAMS runs are
// under way at a time: an invocation adds up one of them for ROWS rows, while the words of its next one, and the next of
// x, are on their way; then the run sums are added in their order. x goes through shared memory, QUADS vectors of four of
// every run at a time. Before this file: a format's file (packed_words.glsl says what that defines), and the macros ROWS,
// QUADS (16 or 8), X_LANES (4 where rows of x are whole vectors of 16 bytes, else 1). With GROUPED, ROWS is 1 and `group`
// says which of `groups` matrices of n rows each row of x is multiplied with.
const uint TEAMS = LANES / COLUMNS;
const uint STAGES = 16u / QUADS;
const uint HALVES = QUADS / 8u;  // of a run, in a stage
const uint PITCH = QUADS + 1u;   // one more, so that runs do not meet in one bank
const uint STAGED = ROWS * TEAMS * QUADS;
const uint BROUGHT = (STAGED + LANES - 1u) / LANES;
const uint RESULTS = ROWS * COLUMNS;
const uint HELD = (RESULTS + LANES - 1u) / LANES;  // results of an invocation
const uint JOINED = TEAMS < 8u ? TEAMS : 8u;       // run sums that are read at a time

// Where neither x nor the weights have magnitudes below these, but 0, no product is below the threshold of canon, so
// that products need no flush.
#if SMALL
const uint LEAST = 0x26000000u - 1u;  // magnitude_key of 2^-51
#else
const uint LEAST = 0x18800000u - 1u;  // 2^-78: weights are at least 2^-24
#endif

shared vec4 staged[ROWS * TEAMS * PITCH];
shared float run_sums[ROWS * LANES];
shared uint careful[2];

vec4 x_quad(uint row, uint quad) {
#if X_LANES == 4
    vec4 four = x[row * (k / 4u) + min(quad, k / 4u - 1u)];
    return quad < k / 4u ? four : vec4(0.0);
#else
    vec4 four;
    [[unroll]] for (uint j = 0u; j < 4u; j++) {
        uint i = quad * 4u + j;
        float value = x[row * k + min(i, k - 1u)];
        four[j] = i < k ? value : 0.0;
    }
    return four;
#endif
}

uint least_key(vec4 v) {
    uvec4 keys = (floatBitsToUint(v) & 0x7fffffffu) - 1u;
    return min(min(keys.x, keys.y), min(keys.z, keys.w));
}

// Which team's run, which row of x, and which four of the staged part number i is.
uint team_of(uint i) {
    return i / QUADS % TEAMS;
}

uint row_of(uint i) {
    return i / (QUADS * TEAMS);
}

// Brings a part of TEAMS runs of x, from `run` on. What lies past the last row is never stored.
#define BRING(run, part) \
    [[unroll]] for (uint q = 0u; q < BROUGHT; q++) { \
        uint i = q * LANES + gl_LocalInvocationIndex; \
        uint quad = ((run) + team_of(i)) * 16u + (part) * QUADS + i % QUADS; \
        coming[q] = x_quad(min(top + row_of(i), m - 1u), quad); \
    }

// Places what was brought, canonical, and notes the least key of it.
#define STAGE(least) \
    [[unroll]] for (uint q = 0u; q < BROUGHT; q++) { \
        uint i = q * LANES + gl_LocalInvocationIndex; \
        uint key = least_key(coming[q]); \
        least = min(least, key); \
        if (key < LEAST) { \
            coming[q] = vec4(canon(coming[q].x), canon(coming[q].y), canon(coming[q].z), canon(coming[q].w)); \
        } \
        if (STAGED % LANES == 0u || i < STAGED) { \
            staged[(row_of(i) * TEAMS + team_of(i)) * PITCH + i % QUADS] = coming[q]; \
        } \
    }

float plain(float a, float b) {
    return a * b;
}

#define ADD_FOUR(times, total, four, weight) \
    total += times(four.x, weight.x); \
    total += times(four.y, weight.y); \
    total += times(four.z, weight.z); \
    total += times(four.w, weight.w);

#define ADD_OCTETS(times, first) \
    for (uint i = 0u; i < 4u; i++) { \
        vec4 low, high; \
        octet(i, low, high); \
        [[unroll]] for (uint r = 0u; r < ROWS; r++) { \
            uint at = (r * TEAMS + team) * PITCH + (first) + 2u * i; \
            vec4 p = staged[at]; \
            vec4 q = staged[at + 1u]; \
            ADD_FOUR(times, totals[r], p, low) \
            ADD_FOUR(times, totals[r], q, high) \
        } \
    }

void multiply(uint top, uint left) {
    uint lane = gl_LocalInvocationIndex % COLUMNS;
    // A driver may see that all invocations read the same of x, where this is a constant.
    uint team = TEAMS == 1u ? 0u : gl_LocalInvocationIndex / COLUMNS;
    uint column = min(left + lane, n - 1u);
#ifdef GROUPED
    uint chosen = group[top];
    column += min(chosen, groups - 1u) * n;
#endif
    float sums[HELD];
    float totals[ROWS];
    vec4 coming[BROUGHT];
    Words next;
    [[unroll]] for (uint q = 0u; q < HELD; q++) {
        sums[q] = 0.0;
    }
    if (first_run < runs) {
        next = fetch(min(first_run + team, runs - 1u), column);
        BRING(first_run, 0u)
    }
    uint turn = 0u;
    if (gl_LocalInvocationIndex == 0u) {
        careful[0] = 0u;
    }
    barrier();
    for (uint run = first_run; run < runs; run += TEAMS) {
        [[unroll]] for (uint r = 0u; r < ROWS; r++) {
            totals[r] = 0.0;
        }
        words = next;
        if (run + TEAMS < runs) {
            next = fetch(min(run + TEAMS + team, runs - 1u), column);
        }
        for (uint part = 0u; part < STAGES; part++) {
            uint least = NO_KEY;
            STAGE(least)
            if (least < LEAST) {
                careful[turn] = 1u;
            }
            barrier();
            // What comes next is on its way while products are added up.
            bool last_part = part == STAGES - 1u;
            if (!last_part || run + TEAMS < runs) {
                BRING(last_part ? run + TEAMS : run, last_part ? 0u : part + 1u)
            }
            bool flush = careful[turn] != 0u || least_weight() < LEAST;
            turn ^= 1u;
            if (gl_LocalInvocationIndex == 0u) {
                careful[turn] = 0u;
            }
            [[unroll]] for (uint h = 0u; h < HALVES; h++) {
                begin_half(part + h);
                if (flush) {
                    ADD_OCTETS(mul, 8u * h)
                } else {
                    [[unroll]] ADD_OCTETS(plain, 8u * h)
                }
            }
            if (last_part) {
                [[unroll]] for (uint r = 0u; r < ROWS && TEAMS > 1u; r++) {
                    run_sums[r * LANES + gl_LocalInvocationIndex] = totals[r];
                }
            }
            barrier();
        }
        [[unroll]] for (uint q = 0u; q < HELD; q++) {
            uint i = q * LANES + gl_LocalInvocationIndex;
            if (TEAMS == 1u) {
                sums[q] += totals[q];
            } else if (i < RESULTS) {
                uint from = i / COLUMNS * LANES + i % COLUMNS;
                for (uint t = 0u; t < TEAMS; t += JOINED) {
                    [[unroll]] for (uint j = 0u; j < JOINED; j++) {
                        float next = run_sums[from + (t + j) * COLUMNS];
                        sums[q] += run + t + j < runs ? next : 0.0;
                    }
                }
            }
        }
    }
    [[unroll]] for (uint q = 0u; q < HELD; q++) {
        uint i = q * LANES + gl_LocalInvocationIndex;
        uint row = top + i / COLUMNS;
        uint to = left + i % COLUMNS;
        if (i < RESULTS && row < m && to < n) {
            uint place = row * n + to;
            float sum = fresh != 0u ? sums[q] : result[place] + sums[q];
#ifdef GROUPED
            sum = chosen < groups ? sum : 0.0;
#endif
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
