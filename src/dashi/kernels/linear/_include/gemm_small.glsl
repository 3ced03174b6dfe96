// result (m, n) = a (m, k) b (k, n) over k in [begin, end), for matrices so small that large tiles would leave most of
// a device idle; kernels/small_tiles.py plans it. A workgroup makes DOWN TM x ACROSS 4 results in GROUPS teams of
// ACROSS x DOWN invocations. Each team works through a part of k of its own: SLAB at a time, `span` in one go, then on
// behind what the others do. An invocation has TM x 4 sums. Define before:
//     TM     rows of results per invocation, 4 or 8
//     STRIDED   if rows have strides, and results are finished by a function: strided_rows.glsl
//     FAST   1: sums in any order, with fma. 0: the order tree64 with products flushed, for at most 64 x 64 of k; span
//            is a run of 64, and the sums of the teams' runs are added in their order.
// Where rows of a and of b are whole vectors of 16 bytes the buffers hold V; elsewhere V is T.

#include "lanes.glsl"
#if !FAST
#include "root_test.glsl"
#endif
#ifdef STRIDED
#include "strided_rows.glsl"
#else
#define A_ROW(r) r * (k / V_LANES)
#define B_STEP_OF_K (n / V_LANES)
#endif

const uint TEAM = ACROSS * DOWN;
const uint ROWS = DOWN * TM;
const uint A_PITCH = ROWS / 4u + 1u;  // one more, so that the columns of a do not meet in one bank
const uint A_WIDE = SLAB / V_LANES;
const uint A_STEP = TEAM / A_WIDE;                      // rows of a that a team brings at once
const uint A_BROUGHT = (ROWS + A_STEP - 1u) / A_STEP;  // vectors that an invocation brings for a slab
const uint B_WIDE = ACROSS * 4u / V_LANES;
const uint B_STEP = TEAM / B_WIDE;
const uint B_BROUGHT = (SLAB + B_STEP - 1u) / B_STEP;
const uint RIGHT = GROUPS * SLAB * A_PITCH;  // where b begins in shared memory
const uint MADE = TM * TEAM;  // vectors of four results of the workgroup
const uint OWN = (TM + GROUPS - 1u) / GROUPS;  // those that an invocation finishes

shared T4 pool[POOL];  // a slab of every team; in between, the sums of every team
#if !FAST
shared uint careful[2];
#endif

uint my_place() {
    return gl_LocalInvocationID.y * ACROSS + gl_LocalInvocationID.x;
}

// Where a team's part of a begins for this invocation, as if `at` were 0.
uint left_from(uint q, uint row) {
    uint r = min(row + my_place() / A_WIDE + q * A_STEP, m - 1u);
    return A_ROW(r) + my_place() % A_WIDE;
}

V fetch_right(uint q, uint from, uint at) {
    uint d = min(my_place() / B_WIDE, B_STEP - 1u) + q * B_STEP;
    return b[from + min(at + d, end - 1u) * B_STEP_OF_K];
}

#if FAST
uint least_key(V v) {
    return 0u;
}
#endif

void put_one(uint depth, uint row, T v) {
    pool[(gl_LocalInvocationID.z * SLAB + depth) * A_PITCH + row / 4u][row % 4u] = v;
}

// Places what was fetched, 0 past the end of k, and gives its least key. Products of what lies past the last row or
// column go nowhere.
uint put_left(uint q, uint at, V value) {
    uint d = my_place() % A_WIDE * V_LANES;
    uint r = my_place() / A_WIDE + q * A_STEP;
    value = at + d < end ? value : V(0);
    if ((TEAM % A_WIDE == 0u || my_place() < A_STEP * A_WIDE) && ((q + 1u) * A_STEP <= ROWS || r < ROWS)) {
        PUT_LANES(put_one, d, r, value)
    }
    return least_key(value);
}

uint put_right(uint q, uint at, V value) {
    uint c = my_place() % B_WIDE * V_LANES;
    uint d = my_place() / B_WIDE + q * B_STEP;
    uint place = RIGHT + (gl_LocalInvocationID.z * SLAB + d) * ACROSS + c / 4u;
    value = at + d < end ? value : V(0);
    if ((TEAM % B_WIDE == 0u || my_place() < B_STEP * B_WIDE) && ((q + 1u) * B_STEP <= SLAB || d < SLAB)) {
        SET_LANES(pool[place], c % 4u, value)
    }
    return least_key(value);
}

// What the next slab needs is held in registers. (Arrays whose size a plan sets cannot be given to functions.) Loads
// are never skipped, so that they do not wait for each other: where the matrix has ended, its edge is read.
#define FETCH(at) { \
    uint across_a = my_place() % A_WIDE; \
    uint shift = min(at / V_LANES + across_a, end / V_LANES - 1u) - across_a; \
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) { \
        left[q] = a[from_a[q] + shift]; \
    } \
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) { \
        right[q] = fetch_right(q, from_b, at); \
    } \
}

#define PUT(at) \
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) { \
        least = min(least, put_left(q, at, left[q])); \
    } \
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) { \
        least = min(least, put_right(q, at, right[q])); \
    }

// Whether a product of the staged elements can be below the threshold. The two flags take turns: one is made ready
// while the other is in use.
bool must_flush(uint least, uint turn) {
#if FAST
    barrier();
    return false;
#else
    if (least < LEAST) {
        careful[turn] = 1u;
    }
    barrier();
    if (gl_LocalInvocationIndex == 0u) {
        careful[turn ^ 1u] = 0u;
    }
    return careful[turn] != 0u;
#endif
}

#if FAST
#define PLAIN(sum, p, q) sum = fma(T4(p), q, sum);
#define FLUSHED PLAIN
#else
T4 flushed(T p, T4 q) {
    p = canon(p);
    return T4(mul(p, canon(q.x)), mul(p, canon(q.y)), mul(p, canon(q.z)), mul(p, canon(q.w)));
}

#define PLAIN(sum, p, q) sum += T4(p) * q;
#define FLUSHED(sum, p, q) sum += flushed(p, q);
#endif

#define ADD_ROWS(ADD, i, p) \
    ADD(sums[i], p.x, q) \
    ADD(sums[i + 1], p.y, q) \
    ADD(sums[i + 2], p.z, q) \
    ADD(sums[i + 3], p.w, q)

#if TM == 8
#define ADD_STEP(ADD, d) \
    T4 p0 = pool[from_left + (d) * A_PITCH]; \
    T4 p1 = pool[from_left + (d) * A_PITCH + DOWN]; \
    T4 q = pool[from_right + (d) * ACROSS]; \
    ADD_ROWS(ADD, 0, p0) \
    ADD_ROWS(ADD, 4, p1)
#else
#define ADD_STEP(ADD, d) \
    T4 p0 = pool[from_left + (d) * A_PITCH]; \
    T4 q = pool[from_right + (d) * ACROSS]; \
    ADD_ROWS(ADD, 0, p0)
#endif

// Adds the sums of the teams to the totals in their order. All invocations call it together, with nothing to read left
// in shared memory.
#define JOIN \
    [[unroll]] for (uint i = 0u; i < TM; i++) { \
        pool[gl_LocalInvocationID.z * MADE + i * TEAM + my_place()] = sums[i]; \
        sums[i] = T4(0); \
    } \
    barrier(); \
    [[unroll]] for (uint o = 0u; o < OWN; o++) { \
        uint i = o * TEAM * GROUPS + gl_LocalInvocationIndex; \
        if (i < MADE) { \
            [[unroll]] for (uint g = 0u; g < GROUPS; g++) { \
                totals[o] += pool[g * MADE + i]; \
            } \
        } \
    }

#ifndef STRIDED
void write(uint row, uint column, T4 v) {
    if (row >= m) {
        return;
    }
    [[unroll]] for (uint e = 0u; e < 4u; e += V_LANES) {
        if (column + e < n) {
            uint i = (row * n + column + e) / V_LANES;
            V total = LANES_AT(v, e);
            total = fresh != 0u ? total : result[i] + total;
#if FAST
            result[i] = total;
#else
            result[i] = last != 0u ? cleaned(total) : total;
#endif
        }
    }
}
#endif

void main() {
#ifdef STRIDED
    uint tile = enter_batch(gl_WorkGroupID.x);
    uint row = tile / across * ROWS;
    uint column = tile % across * (ACROSS * 4u);
#else
    uint row = gl_WorkGroupID.x / across * ROWS;
    uint column = gl_WorkGroupID.x % across * (ACROSS * 4u);
#endif
    T4 sums[TM];
    T4 totals[OWN];
    [[unroll]] for (uint i = 0u; i < TM; i++) {
        sums[i] = T4(0);
    }
    [[unroll]] for (uint o = 0u; o < OWN; o++) {
        totals[o] = T4(0);
    }
    uint lead = begin;  // where the first team is: all make the same trips, so all of them reach every barrier
    uint at = begin + gl_LocalInvocationID.z * span;
    uint within = 0u;
    V left[A_BROUGHT];
    V right[B_BROUGHT];
    uint from_a[A_BROUGHT];
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) {
        from_a[q] = left_from(q, row);
    }
    uint from_b = min(column / V_LANES + my_place() % B_WIDE, n / V_LANES - 1u);
#ifdef STRIDED
    from_b += b_from;
#endif
    FETCH(at)
#if !FAST
    if (gl_LocalInvocationIndex == 0u) {
        careful[0] = 0u;
    }
    barrier();
#endif
    uint from_left = gl_LocalInvocationID.z * SLAB * A_PITCH + gl_LocalInvocationID.y;
    uint from_right = RIGHT + gl_LocalInvocationID.z * SLAB * ACROSS + gl_LocalInvocationID.x;
    for (uint turn = 0u; lead < end; turn ^= 1u) {
        uint least = 0xffffffffu;
        PUT(at)
        bool flush = must_flush(least, turn);
        within += SLAB;
        bool gone = within == span;
        uint move = gone ? SLAB + (GROUPS - 1u) * span : SLAB;
        within = gone ? 0u : within;
        uint next = at + move;
        FETCH(next)  // on its way while the products are made
        if (at < end) {
            if (flush) {
                for (uint d = 0u; d < SLAB; d++) {
                    ADD_STEP(FLUSHED, d)
                }
            } else {
                [[unroll]] for (uint d = 0u; d < SLAB; d++) {
                    ADD_STEP(PLAIN, d)
                }
            }
        }
        at = next;
        lead += move;
        barrier();
#if !FAST
        if (gone || lead >= end) {
            JOIN
            barrier();
        }
#endif
    }
#if FAST
    JOIN
#endif
    uvec2 places[OWN];
    [[unroll]] for (uint o = 0u; o < OWN; o++) {
        uint i = o * TEAM * GROUPS + gl_LocalInvocationIndex;
        uint t = i % TEAM;
        uint r = i / TEAM;
        places[o] = uvec2(row + (r / 4u * DOWN + t / ACROSS) * 4u + r % 4u, column + t % ACROSS * 4u);
    }
#ifdef STRIDED
    [[unroll]] for (uint o = 0u; o < OWN; o++) {
        if (TM % GROUPS == 0u || o * TEAM * GROUPS + gl_LocalInvocationIndex < MADE) {
            totals[o] = finish_four(places[o].x, places[o].y, totals[o]);
        }
    }
#endif
    [[unroll]] for (uint o = 0u; o < OWN; o++) {
        if (o * TEAM * GROUPS + gl_LocalInvocationIndex < MADE) {
#ifdef STRIDED
            store_four(places[o].x, places[o].y, totals[o]);
#else
            write(places[o].x, places[o].y, totals[o]);
#endif
        }
    }
}
