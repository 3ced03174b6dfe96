// result (m, n) = a (m, k) b (k, n) over k in [begin, end), tile by tile; kernels/tiles.py plans it. Define before:
//     TM, TN   rows and columns of results per invocation, 4 or 8; a workgroup of 256 makes 16 TM x 16 TN of them
//     NARROW   if a workgroup is 8 x 8 invocations instead of 16 x 16 (blocks of 4 x 4 only)
//     STRIDED  if operands are read through strides, and results finished by a function: strided_tile.glsl
//     FAST     1: sums in any order, contracted as the compiler likes. 0: the order tree64 with products flushed, for
//              at most 64 x 64 of k; the sum of a run in one set of registers, the sum of runs in another.
// Where rows of a and of b are whole vectors of 16 bytes the buffers hold V; elsewhere V is T.
// The flush of products is left out where the smallest exponents of the staged elements of a and of b allow it.

#include "exponent_limits.glsl"
#include "lanes.glsl"

#ifdef NARROW
#define SIDE 8u
#else
#define SIDE 16u
#endif
#if T_IS_F64
const uint STEP = 8u;
#else
const uint STEP = 16u;
#endif
const uint RUN = 64u;
const uint ROWS = SIDE * TM;
const uint COLUMNS = SIDE * TN;
const uint A_PITCH = ROWS / 4u + 1u;  // one more, so that the columns of a do not meet in one bank
const uint B_PITCH = COLUMNS / 4u + 1u;
const uint A_BROUGHT = TM * STEP / SIDE / V_LANES;  // vectors that an invocation brings for a step of k
const uint B_BROUGHT = TN * STEP / SIDE / V_LANES;
const uint A_WIDE = STEP / V_LANES;
const uint B_WIDE = COLUMNS / V_LANES;
const uint UNROLLED = TM == 8 ? 4u : 1u;

shared T4 left[STEP * A_PITCH];
shared T4 right[STEP * B_PITCH];
#if !FAST
shared uint least_left[2];
shared uint least_right[2];
#endif

#ifdef NARROW
uint my_row() {
    return gl_LocalInvocationIndex / SIDE;
}

uint my_column() {
    return gl_LocalInvocationIndex % SIDE;
}
#else
// A subgroup of 32 makes a patch of 4 x 8 blocks, so that it reads few different elements.
uint my_row() {
    uint me = gl_LocalInvocationIndex;
    return ((me >> 3) & 3u) | ((me >> 6) << 2);
}

uint my_column() {
    uint me = gl_LocalInvocationIndex;
    return (me & 7u) | (((me >> 5) & 1u) << 3);
}
#endif

struct Brought {
    V left[A_BROUGHT];
    V right[B_BROUGHT];
};

#ifndef STRIDED
// Loads are never skipped, so that they do not wait for each other: where the matrix has ended, its edge is read.
Brought fetch(uint row, uint column, uint depth) {
    uint me = gl_LocalInvocationIndex;
    uint top = end / V_LANES - 1u;
    Brought v;
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) {
        uint r = min(row + q * (256u / A_WIDE) + me / A_WIDE, m - 1u);
        v.left[q] = a[r * (k / V_LANES) + min(depth / V_LANES + me % A_WIDE, top)];
    }
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) {
        uint i = q * 256u + me;
        uint c = min(column / V_LANES + i % B_WIDE, n / V_LANES - 1u);
        v.right[q] = b[min(depth + i / B_WIDE, end - 1u) * (n / V_LANES) + c];
    }
    return v;
}
#endif

#if FAST
V cleaned(V v) {
    return v;
}
#else
uint exponent(T v) {
#if T_IS_F64
    uint e = (unpackDouble2x32(v).y >> 20) & 0x7ffu;
#else
    uint e = (floatBitsToUint(v) >> 23) & 0xffu;
#endif
    return e == 0u ? NO_EXPONENT : e;  // a canonical value with exponent 0 is zero: its products are too
}

V cleaned(V v) {
    return EACH_LANE(canon, v);
}

uint least_exponent(V v) {
    return LEAST_LANE(exponent, v);
}
#endif

void put_left(uint depth, uint row, T v) {
    left[depth * A_PITCH + row / 4u][row % 4u] = v;
}

#ifdef STRIDED
#include "strided_tile.glsl"
#else
// Places what was fetched for this depth, 0 past the end of k; gives its least exponents. Products of what lies past
// the last row or column go nowhere.
uvec2 put(Brought v, uint depth) {
    uint me = gl_LocalInvocationIndex;
    uvec2 least = uvec2(NO_EXPONENT);
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) {
        uint d = me % A_WIDE * V_LANES;
        uint r = q * (256u / A_WIDE) + me / A_WIDE;
        V value = depth + d < end ? cleaned(v.left[q]) : V(0);
        PUT_LANES(put_left, d, r, value)
#if !FAST
        least.x = min(least.x, least_exponent(value));
#endif
    }
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) {
        uint i = q * 256u + me;
        uint d = i / B_WIDE;
        uint c = i % B_WIDE * V_LANES;
        V value = depth + d < end ? cleaned(v.right[q]) : V(0);
        SET_LANES(right[d * B_PITCH + c / 4u], c % 4u, value)
#if !FAST
        least.y = min(least.y, least_exponent(value));
#endif
    }
    return least;
}
#endif

#if FAST
bool must_flush(uvec2 least, uint slot) {
    barrier();
    return false;
}
#else
// Whether a product of the staged elements can be below the threshold. Almost always all exponents are at least half
// the sum that is needed, and nothing is exchanged; otherwise the least ones are found. The two slots take turns: one
// is made ready while the other is in use.
bool must_flush(uvec2 least, uint slot) {
    const uint half_sum = (LEAST_SUM + 1u) / 2u;
    if (least.x < half_sum) {
        atomicMin(least_left[slot], least.x);
    }
    if (least.y < half_sum) {
        atomicMin(least_right[slot], least.y);
    }
    barrier();
    bool small = min(least_left[slot], least_right[slot]) < half_sum;
    if (small) {
        atomicMin(least_left[slot], least.x);
        atomicMin(least_right[slot], least.y);
        barrier();
        small = least_left[slot] + least_right[slot] < LEAST_SUM;
    }
    if (gl_LocalInvocationIndex == 0u) {
        least_left[slot ^ 1u] = NO_EXPONENT;
        least_right[slot ^ 1u] = NO_EXPONENT;
    }
    return small;
}
#endif

// low[i] and high[i]: four columns of results each of row i of this invocation's.
struct Block {
    T4 low[TM];
#if TN == 8
    T4 high[TM];
#endif
};

Block zero_block() {
    Block block;
    [[unroll]] for (uint i = 0u; i < TM; i++) {
        block.low[i] = T4(0);
#if TN == 8
        block.high[i] = T4(0);
#endif
    }
    return block;
}

T4 plain(T p, T4 q) {
    return T4(p) * q;
}

#if FAST
#define FLUSHED plain
#else
T4 flushed(T p, T4 q) {
    return T4(mul(p, q.x), mul(p, q.y), mul(p, q.z), mul(p, q.w));
}
#define FLUSHED flushed
#endif

#if FAST && defined(STRIDED)
// Nothing is contracted in kernels whose tails are portable functions, unless it is written so.
#if TN == 8
#define ADD_ROW(times, i, p) \
    sums.low[i] = fma(T4(p), q0, sums.low[i]); \
    sums.high[i] = fma(T4(p), q1, sums.high[i]);
#else
#define ADD_ROW(times, i, p) sums.low[i] = fma(T4(p), q0, sums.low[i]);
#endif
#elif TN == 8
#define ADD_ROW(times, i, p) \
    sums.low[i] += times(p, q0); \
    sums.high[i] += times(p, q1);
#else
#define ADD_ROW(times, i, p) sums.low[i] += times(p, q0);
#endif
#define ADD_ROWS(times, i, p) \
    ADD_ROW(times, i, p.x) \
    ADD_ROW(times, i + 1, p.y) \
    ADD_ROW(times, i + 2, p.z) \
    ADD_ROW(times, i + 3, p.w)

#define LOAD_FACTORS \
    T4 p0 = left[d * A_PITCH + r]; \
    T4 q0 = right[d * B_PITCH + c]; \
    T4 p1 = TM == 8 ? left[d * A_PITCH + r + (TM == 8 ? 16u : 0u)] : T4(0); \
    T4 q1 = TN == 8 ? right[d * B_PITCH + c + (TN == 8 ? 16u : 0u)] : T4(0);

#if TM == 8
#define ADD_STEP(times) \
    LOAD_FACTORS \
    ADD_ROWS(times, 0, p0) \
    ADD_ROWS(times, 4, p1)
#else
#define ADD_STEP(times) \
    LOAD_FACTORS \
    ADD_ROWS(times, 0, p0)
#endif

#ifndef STRIDED
void write(uint row, uint column, T4 v) {
    if (row >= m) {
        return;
    }
#if V_LANES == 4
    if (column < n) {
        uint i = (row * n + column) / 4u;
        T4 total = fresh != 0u ? v : result[i] + v;
        result[i] = last != 0u ? cleaned(total) : total;
    }
#else
    [[unroll]] for (uint e = 0u; e < 4u; e += V_LANES) {
        if (column + e < n) {
            uint i = (row * n + column + e) / V_LANES;
            V total = LANES_AT(v, e);
            total = fresh != 0u ? total : result[i] + total;
            result[i] = last != 0u ? cleaned(total) : total;
        }
    }
#endif
}
#endif

// The sums stay in this function, so that no driver copies them about.
void multiply_tile(uint row, uint column) {
    uint r = my_row();
    uint c = my_column();
    Block sums = zero_block();
#if !FAST
    Block total = zero_block();
#endif
    Brought ahead;
    if (begin < end) {
        ahead = fetch(row, column, begin);
    }
    uint slot = 0u;
    for (uint depth = begin; depth < end; depth += STEP) {
        bool flush = must_flush(put(ahead, depth), slot);
        ahead = fetch(row, column, depth + STEP);  // on its way while the products are made
        if (flush) {
            for (uint d = 0u; d < STEP; d++) {
                ADD_STEP(FLUSHED)
            }
        } else {
            for (uint start = 0u; start < STEP; start += UNROLLED) {
                [[unroll]] for (uint e = 0u; e < UNROLLED; e++) {
                    uint d = start + e;
                    ADD_STEP(plain)
                }
            }
        }
        slot ^= 1u;
        barrier();
#if !FAST
        if ((depth + STEP) % RUN == 0u || depth + STEP >= end) {
            [[unroll]] for (uint i = 0u; i < TM; i++) {
                total.low[i] += sums.low[i];
                sums.low[i] = T4(0);
#if TN == 8
                total.high[i] += sums.high[i];
                sums.high[i] = T4(0);
#endif
            }
        }
#endif
    }
#if FAST
#define TOTAL sums
#else
#define TOTAL total
#endif
#ifdef STRIDED
    // One piece of code for all: the block is picked apart, not indexed, so that it stays in registers.
    for (uint i = 0u; i < TM * TN / 4u; i++) {
        T4 four = T4(0);
        [[unroll]] for (uint j = 0u; j < TM; j++) {
            four = i == j ? TOTAL.low[j] : four;
#if TN == 8
            four = i == j + TM ? TOTAL.high[j] : four;
#endif
        }
        uint j = i % TM;
        write(row + j / 4u * (4u * SIDE) + r * 4u + j % 4u, column + c * 4u + i / TM * (4u * SIDE), four);
    }
#else
    [[unroll]] for (uint i = 0u; i < TM; i++) {
        uint y = row + i / 4u * 64u + r * 4u + i % 4u;
        write(y, column + c * 4u, TOTAL.low[i]);
#if TN == 8
        write(y, column + c * 4u + 64u, TOTAL.high[i]);
#endif
    }
#endif
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint tile = first_tile + gl_WorkGroupID.x; tile < tiles; tile += stride) {
#if !FAST
        if (gl_LocalInvocationIndex == 0u) {
            least_left[0] = NO_EXPONENT;
            least_right[0] = NO_EXPONENT;
        }
        barrier();
#endif
#ifdef STRIDED
        uint within = enter_batch(tile);
        multiply_tile(within / across * ROWS, within % across * COLUMNS);
#else
        multiply_tile(tile / across * ROWS, tile % across * COLUMNS);
#endif
    }
}
