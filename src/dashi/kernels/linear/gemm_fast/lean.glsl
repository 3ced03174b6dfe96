// result (m, n) = a (m, k) b (k, n) over k in [begin, end): whole tiles alone, so nothing is guarded. Define before:
//     TN     columns of results per invocation, 4 or 8; a workgroup of 256 makes 128 x 16 TN of them
//     STEP   how much of k is staged at a time, 8 or 16
// An invocation has two rows of quadrants of 4 x 4, 64 rows apart, so that a subgroup reads shared memory in whole
// vectors without conflicts. There are two buffers: one is filled while the other is multiplied.

#include "lanes.glsl"

const uint LOCAL = 256u;
const uint ROWS = 128u;
const uint COLUMNS = 16u * TN;
const uint A_PITCH = ROWS / 4u + 1u;  // one more, so that the columns of a do not meet in one bank
const uint B_PITCH = COLUMNS / 4u;
const uint A_BROUGHT = STEP / 2u / V_LANES;  // pairs of vectors of a row
const uint B_WIDE = COLUMNS / V_LANES;
const uint B_BROUGHT = STEP * B_WIDE / LOCAL;
const uint GROUP = 8u;  // rows of tiles that are worked on together, so that their part of a stays in the cache

shared T4 left[2u * STEP * A_PITCH];
shared T4 right[2u * STEP * B_PITCH];

struct Brought {
    V left[A_BROUGHT];
    V right[B_BROUGHT];
};

Brought fetch(uint row, uint column, uint depth) {
    uint me = gl_LocalInvocationIndex;
    uint from = ((row + me / 2u) * k + depth) / V_LANES + me % 2u;
    Brought v;
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) {
        v.left[q] = a[from + 2u * q];
    }
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) {
        uint d = depth + me / B_WIDE + q * (LOCAL / B_WIDE);
        v.right[q] = b[(d * n + column) / V_LANES + me % B_WIDE];
    }
    return v;
}

// The columns of a become rows.
void put(Brought v, uint slot) {
    uint me = gl_LocalInvocationIndex;
    uint r = me / 2u;
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) {
        uint d = slot * STEP + (2u * q + me % 2u) * V_LANES;
        [[unroll]] for (uint e = 0u; e < V_LANES; e++) {
            left[(d + e) * A_PITCH + r / 4u][r % 4u] = v.left[q][e];
        }
    }
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) {
        uint d = slot * STEP + me / B_WIDE + q * (LOCAL / B_WIDE);
#if V_LANES == 4
        right[d * B_PITCH + me % B_WIDE] = v.right[q];
#else
        uint c = me % B_WIDE * V_LANES;
        right[d * B_PITCH + c / 4u][c % 4u] = v.right[q].x;
        right[d * B_PITCH + c / 4u][c % 4u + 1u] = v.right[q].y;
#endif
    }
}

#if TN == 8
#define ADD_ROW(i, p) \
    low[i] = fma(T4(p), q0, low[i]); \
    high[i] = fma(T4(p), q1, high[i]);
#else
#define ADD_ROW(i, p) low[i] = fma(T4(p), q0, low[i]);
#endif

void write(uint row, uint column, T4 v) {
    uint i = (row * n + column) / V_LANES;
#if V_LANES == 4
    result[i] = fresh != 0u ? v : result[i] + v;
#else
    result[i] = fresh != 0u ? v.xy : result[i] + v.xy;
    result[i + 1u] = fresh != 0u ? v.zw : result[i + 1u] + v.zw;
#endif
}

// The sums stay in this function, so that no driver copies them about.
void multiply_tile(uint row, uint column) {
    uint me = gl_LocalInvocationIndex;
    // A subgroup of 32 makes a patch of 4 x 8 blocks, so that it reads few different elements.
    uint r = ((me >> 3) & 3u) | ((me >> 6) << 2);
    uint c = (me & 7u) | (((me >> 5) & 1u) << 3);
    T4 low[8];
#if TN == 8
    T4 high[8];
#endif
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        low[i] = T4(0);
#if TN == 8
        high[i] = T4(0);
#endif
    }
    put(fetch(row, column, begin), 0u);
    barrier();
    uint slot = 0u;
    for (uint depth = begin; depth < end; depth += STEP) {
        // On its way while the products are made; after the last, the first again, which nobody reads.
        Brought ahead = fetch(row, column, depth + STEP < end ? depth + STEP : begin);
        uint from_left = slot * STEP * A_PITCH + r;
        uint from_right = slot * STEP * B_PITCH + c;
        [[unroll]] for (uint d = 0u; d < STEP; d++) {
            T4 p0 = left[from_left + d * A_PITCH];
            T4 p1 = left[from_left + d * A_PITCH + 16u];
            T4 q0 = right[from_right + d * B_PITCH];
#if TN == 8
            T4 q1 = right[from_right + d * B_PITCH + 16u];
#endif
            ADD_ROW(0, p0.x)
            ADD_ROW(1, p0.y)
            ADD_ROW(2, p0.z)
            ADD_ROW(3, p0.w)
            ADD_ROW(4, p1.x)
            ADD_ROW(5, p1.y)
            ADD_ROW(6, p1.z)
            ADD_ROW(7, p1.w)
        }
        slot ^= 1u;
        put(ahead, slot);
        barrier();
    }
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        uint y = row + i / 4u * 64u + r * 4u + i % 4u;
        write(y, column + c * 4u, low[i]);
#if TN == 8
        write(y, column + c * 4u + 64u, high[i]);
#endif
    }
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint tile = first_tile + gl_WorkGroupID.x; tile < tiles; tile += stride) {
        uint group = tile / (GROUP * across);
        uint place = tile % (GROUP * across);
        uint rows = min(GROUP, m / ROWS - group * GROUP);
        multiply_tile((group * GROUP + place % rows) * ROWS, place / rows * COLUMNS);
    }
}
