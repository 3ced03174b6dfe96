// result[j] = the sum over i of x[i] A[i, j], in the canonical order tree64, for at most 64 x 64 rows;
// kernels/columns.py plans it. Small matrices are a matter of latency: every invocation has one run of 64 rows of a
// column, and asks for BATCH of them at once; x goes through shared memory meanwhile. A workgroup is LANES columns
// wide, so that whole lines of the cache are read, and as many runs deep as there are. Where rows are whole vectors of
// 16 bytes the buffers may hold V, columns side by side; elsewhere V is T.

#include "root_test.glsl"
#include "staged_runs.glsl"

const uint RUN_PITCH = RUN / P_LANES + 1u;  // one more, so that neighbouring runs do not meet in one bank

shared P staged[DEPTH * RUN_PITCH];
shared V run_sums[DEPTH * LANES];
shared uint careful[DEPTH];  // 1 where x has values in a run that products may be flushed for

V flushed(T p, V v) {
#if V_LANES == 4
    return V(mul(p, canon(v.x)), mul(p, canon(v.y)), mul(p, canon(v.z)), mul(p, canon(v.w)));
#elif V_LANES == 2
    return V(mul(p, canon(v.x)), mul(p, canon(v.y)));
#else
    return mul(p, canon(v));
#endif
}

V plain(T p, V v) {
    return V(p) * v;
}

struct Batch {
    V row[BATCH];
};

// Rows from `first` on of a run that begins at `at` and has `count` of them; past its end the last is read.
Batch fetch(uint at, uint first, uint count) {
    Batch v;
    if (count == RUN) {
        [[unroll]] for (uint q = 0u; q < BATCH; q++) {
            v.row[q] = A[at + (first + q) * pitch];
        }
    } else {
        [[unroll]] for (uint q = 0u; q < BATCH; q++) {
            v.row[q] = A[at + min(first + q, count - 1u) * pitch];
        }
    }
    return v;
}

#define ADD_PRODUCT(times, p, q) \
    total += times(p, now.row[q]); \
    least = min(least, least_key(now.row[q]));
#if T_IS_F64
#define ADD_PRODUCTS(times, q) \
    ADD_PRODUCT(times, p.x, q) \
    ADD_PRODUCT(times, p.y, q + 1u)
#else
#define ADD_PRODUCTS(times, q) \
    ADD_PRODUCT(times, p.x, q) \
    ADD_PRODUCT(times, p.y, q + 1u) \
    ADD_PRODUCT(times, p.z, q + 2u) \
    ADD_PRODUCT(times, p.w, q + 3u)
#endif

bool is_finite(T v) {
#if T_IS_F64
    return (unpackDouble2x32(v).y & 0x7ff00000u) != 0x7ff00000u;
#else
    return (floatBitsToUint(v) & 0x7f800000u) != 0x7f800000u;
#endif
}

bool all_finite(V v) {
#if V_LANES == 4
    return is_finite(v.x) && is_finite(v.y) && is_finite(v.z) && is_finite(v.w);
#elif V_LANES == 2
    return is_finite(v.x) && is_finite(v.y);
#else
    return is_finite(v);
#endif
}

void main() {
    uint lane = gl_LocalInvocationID.x;
    uint run = gl_LocalInvocationID.y;
    uint j = gl_WorkGroupID.x * LANES + lane;
    uint count = min(RUN, rows - run * RUN);
    uint at = run * RUN * pitch + min(j, pitch - 1u);
    // x first, so that it is there while the matrix is under way.
    T mine[RUN / LANES];
    [[unroll]] for (uint q = 0u; q < RUN / LANES; q++) {
        mine[q] = x[min(q * (LANES * DEPTH) + gl_LocalInvocationIndex, rows - 1u)];
    }
    Batch now = fetch(at, 0u, count);
    if (lane == 0u) {
        careful[run] = 0u;
    }
    barrier();
    [[unroll]] for (uint q = 0u; q < RUN / LANES; q++) {
        uint i = q * (LANES * DEPTH) + gl_LocalInvocationIndex;
        T value = i < rows ? canon(mine[q]) : T(0);
        staged[i / RUN * RUN_PITCH + i % RUN / P_LANES][i % P_LANES] = value;
        if (key(value) < LEAST) {
            careful[i / RUN] = 1u;
        }
    }
    barrier();
    bool flush = careful[run] != 0u;
    V total = V(0);
    for (uint first = 0u; first < RUN; first += BATCH) {
        if (first > 0u) {
            now = fetch(at, first, count);
        }
        uint from = run * RUN_PITCH + first / P_LANES;
        // As if nothing had to be flushed, while the rows come in; what lies past the last row is times 0.
        V before = total;
        uint least = NO_KEY;
        [[unroll]] for (uint q = 0u; q < BATCH; q += P_LANES) {
            P p = staged[from + q / P_LANES];
            ADD_PRODUCTS(plain, q)
        }
        bool again = flush || least < LEAST || (count < RUN && !all_finite(now.row[BATCH - 1u]));
        if (again) {
            total = before;
            [[unroll]] for (uint q = 0u; q < BATCH; q++) {
                now.row[q] = first + q < count ? now.row[q] : V(0);
            }
            [[unroll]] for (uint q = 0u; q < BATCH; q += P_LANES) {
                P p = staged[from + q / P_LANES];
                ADD_PRODUCTS(flushed, q)
            }
        }
    }
    run_sums[run * LANES + lane] = total;
    barrier();
    if (run == 0u && j < pitch) {
        V result_sum = V(0);
        [[unroll]] for (uint i = 0u; i < DEPTH; i++) {
            result_sum += run_sums[i * LANES + lane];
        }
        result[j] = cleaned(result_sum);
    }
}
