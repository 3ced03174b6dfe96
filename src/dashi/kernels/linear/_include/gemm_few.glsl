// result (m, n) = a (m, k) b (k, n) over k in [begin, end) for few rows of a, where reading b is what takes time: every
// element of b is read once for TM rows. kernels/linear/_few_rows.py plans it. A workgroup is LANES vectors of a row of
// b wide and DEPTH runs of 64 deep; an invocation adds up one run at a time, TM rows of it. a goes through shared
// memory, STEP of each run at a time, while the next STEP rows of b are on their way. Define before:
//     TM     rows of results per workgroup, a multiple of 4
//     STEP   how much of a run is under way at a time
//     STRIDED   if rows have strides, and results are finished by a function: strided_rows.glsl
//     FAST   1: products and sums contracted as the compiler likes. 0: the order tree64 with products flushed, for at
//            most 64 x 64 of k.
// Where rows of a and of b are whole vectors of 16 bytes the buffers hold V; elsewhere V is T.

#include "lanes.glsl"
#if !FAST
#include "root_test.glsl"
#endif
#include "staged_runs.glsl"
#ifdef STRIDED
#include "strided_rows.glsl"
#define A_PLACE(r, d) A_ROW(r) + (d) / V_LANES
#define B_PITCH B_STEP_OF_K
#else
#define A_PLACE(r, d) (r * k + d) / V_LANES
#define B_PITCH pitch
#endif

const uint JOINED = 4u;  // rows whose sums are joined at a time
const uint PITCH = STEP / P_LANES + 1u;  // one more, so that neighbouring runs do not meet in one bank
const uint A_WIDE = STEP / V_LANES;
const uint A_VECTORS = TM * DEPTH * A_WIDE;
const uint TEAM = LANES * DEPTH;
const uint A_BROUGHT = (A_VECTORS + TEAM - 1u) / TEAM;  // vectors of a that an invocation brings for a step

shared P staged[TM * DEPTH * PITCH];
shared V run_sums[JOINED * DEPTH * LANES];
#if !FAST
shared uint careful[2];
#endif

// Where in shared memory an element of a goes: row r, `d` within the step of a run.
void put_one(uint d, uint place, T v) {
    staged[place * PITCH + d / P_LANES][d % P_LANES] = v;
}

#if !FAST
V flushed(T p, V v) {
#if V_LANES == 4
    return V(mul(p, canon(v.x)), mul(p, canon(v.y)), mul(p, canon(v.z)), mul(p, canon(v.w)));
#elif V_LANES == 2
    return V(mul(p, canon(v.x)), mul(p, canon(v.y)));
#else
    return mul(p, canon(v));
#endif
}
#endif

V plain(T p, V v) {
    return V(p) * v;
}

// Loads are never skipped, so that they do not wait for each other: where a matrix has ended, its edge is read. `at` is
// where this invocation's run is, `lead` where the first one is.
#define FETCH(at, lead) { \
    [[unroll]] for (uint q = 0u; q < STEP; q++) { \
        coming[q] = b[min(at + q, end - 1u) * B_PITCH + column]; \
    } \
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) { \
        uint i = min(q * TEAM + gl_LocalInvocationIndex, A_VECTORS - 1u); \
        uint r = min(row + i / (A_WIDE * DEPTH), m - 1u); \
        uint d = lead + i / A_WIDE % DEPTH * RUN + i % A_WIDE * V_LANES; \
        left[q] = a[A_PLACE(r, min(d, end - V_LANES))]; \
    } \
}

#if T_IS_F64
#define ADD_PRODUCTS(times, r, q) \
    sums[r] += times(p.x, now[q]); \
    sums[r] += times(p.y, now[q + 1u]);
#else
#define ADD_PRODUCTS(times, r, q) \
    sums[r] += times(p.x, now[q]); \
    sums[r] += times(p.y, now[q + 1u]); \
    sums[r] += times(p.z, now[q + 2u]); \
    sums[r] += times(p.w, now[q + 3u]);
#endif

#define ADD_STEP(times) \
    [[unroll]] for (uint q = 0u; q < STEP; q += P_LANES) { \
        [[unroll]] for (uint r = 0u; r < TM; r++) { \
            P p = staged[(r * DEPTH + run) * PITCH + q / P_LANES]; \
            ADD_PRODUCTS(times, r, q) \
        } \
    }

void main() {
    uint lane = gl_LocalInvocationID.x;
    uint run = gl_LocalInvocationID.y;
    uint pitch = n / V_LANES;
#ifdef STRIDED
    uint block = enter_batch(gl_WorkGroupID.x);
    uint row = block % down * TM;
    uint j = block / down * LANES + lane;
    uint column = b_from + min(j, pitch - 1u);
#else
    uint row = gl_WorkGroupID.x % down * TM;
    uint j = gl_WorkGroupID.x / down * LANES + lane;
    uint column = min(j, pitch - 1u);
#endif
    V sums[TM];
    V totals[TM / JOINED];
    V now[STEP];
    V coming[STEP];
    V left[A_BROUGHT];
    [[unroll]] for (uint r = 0u; r < TM; r++) {
        sums[r] = V(0);
    }
    [[unroll]] for (uint r = 0u; r < TM / JOINED; r++) {
        totals[r] = V(0);
    }
    uint lead = begin;  // all invocations make the same trips, so all of them reach every barrier
    uint within = 0u;
    FETCH(lead + run * RUN, lead)
#if !FAST
    if (gl_LocalInvocationIndex == 0u) {
        careful[0] = 0u;
    }
    barrier();
#endif
    for (uint turn = 0u; lead < end; turn ^= 1u) {
        uint at = lead + run * RUN;
        uint least = 0xffffffffu;
        [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) {
            uint i = q * TEAM + gl_LocalInvocationIndex;
            uint d = i % A_WIDE * V_LANES;
            V value = lead + i / A_WIDE % DEPTH * RUN + d < end ? left[q] : V(0);
#if !FAST
            value = cleaned(value);
            least = min(least, least_key(value));
#endif
            if (A_VECTORS % TEAM == 0u || i < A_VECTORS) {
                PUT_LANES(put_one, d, i / A_WIDE, value)
            }
        }
        [[unroll]] for (uint q = 0u; q < STEP; q++) {
            now[q] = coming[q];
        }
#if !FAST
        if (least < LEAST) {
            careful[turn] = 1u;
        }
#endif
        barrier();
#if !FAST
        bool flush = careful[turn] != 0u;
        if (gl_LocalInvocationIndex == 0u) {
            careful[turn ^ 1u] = 0u;
        }
#endif
        within += STEP;
        bool gone = within == RUN;
        within = gone ? 0u : within;
        lead += gone ? STEP + (DEPTH - 1u) * RUN : STEP;
        FETCH(lead + run * RUN, lead)  // on its way while the products are made
        if (at < end) {
            if (at + STEP > end) {
                [[unroll]] for (uint q = 0u; q < STEP; q++) {
                    now[q] = at + q < end ? now[q] : V(0);
                }
            }
#if FAST
            ADD_STEP(plain)
#else
            [[unroll]] for (uint q = 0u; q < STEP; q++) {
                least = min(least, least_key(now[q]));
            }
            if (flush || least < LEAST) {
                ADD_STEP(flushed)
            } else {
                ADD_STEP(plain)
            }
#endif
        }
        barrier();
        if (gone || lead >= end) {
            [[unroll]] for (uint part = 0u; part < TM / JOINED; part++) {
                [[unroll]] for (uint r = 0u; r < JOINED; r++) {
                    run_sums[(r * DEPTH + run) * LANES + lane] = sums[part * JOINED + r];
                    sums[part * JOINED + r] = V(0);
                }
                barrier();
                if (run < JOINED) {
                    for (uint i = 0u; i < DEPTH; i++) {
                        totals[part] += run_sums[(run * DEPTH + i) * LANES + lane];
                    }
                }
                barrier();
            }
        }
    }
    if (run < JOINED && j < pitch) {
        [[unroll]] for (uint part = 0u; part < TM / JOINED; part++) {
            uint r = row + part * JOINED + run;
#ifdef STRIDED
            store_lanes(r, j * V_LANES, totals[part]);
#else
            if (r < m) {
                V total = fresh != 0u ? totals[part] : result[r * pitch + j] + totals[part];
#if FAST
                result[r * pitch + j] = total;
#else
                result[r * pitch + j] = last != 0u ? cleaned(total) : total;
#endif
            }
#endif
        }
    }
}
