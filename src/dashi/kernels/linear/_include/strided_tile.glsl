// What gemm_tile.glsl reads and writes, for operands with strides and batch axes. a and b are counted in vectors V along
// one of their axes, the other strides in vectors too: rows of a where A_ACROSS, else k; k where B_ALONG, else columns.
// With WINDOWS b is read through windows (windows.glsl), element by element.
#include "strided_batch.glsl"
#ifdef WINDOWS
#include "windows.glsl"
#else
#define B_PLACE(depth, column) (depth) * b_depth + (column) * b_column
#endif

const uint TEAM = SIDE * SIDE;

const uint A_TALL = ROWS / V_LANES;
const uint B_DEEP = STEP / V_LANES;

// Row and depth within a tile of the q-th vector of a that this invocation brings.
uvec2 place_left(uint q) {
    uint i = q * TEAM + gl_LocalInvocationIndex;
    return A_ACROSS != 0u ? uvec2(i % A_TALL * V_LANES, i / A_TALL) : uvec2(i / A_WIDE, i % A_WIDE * V_LANES);
}

// Depth and column of the q-th vector of b.
uvec2 place_right(uint q) {
    uint i = q * TEAM + gl_LocalInvocationIndex;
    return B_ALONG != 0u ? uvec2(i % B_DEEP * V_LANES, i / B_DEEP) : uvec2(i / B_WIDE, i % B_WIDE * V_LANES);
}

// Loads are never skipped, so that they do not wait for each other: where the matrix has ended, its edge is read.
Brought fetch(uint row, uint column, uint depth) {
    Brought v;
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) {
        uvec2 at = uvec2(row, depth) + place_left(q);
        at = A_ACROSS != 0u ? uvec2(min(at.x / V_LANES, m / V_LANES - 1u), min(at.y, end - 1u))
                            : uvec2(min(at.x, m - 1u), min(at.y / V_LANES, end / V_LANES - 1u));
        v.left[q] = a[a_from + at.x * a_row + at.y * a_depth];
    }
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) {
        uvec2 at = uvec2(depth, column) + place_right(q);
        at = B_ALONG != 0u ? uvec2(min(at.x / V_LANES, end / V_LANES - 1u), min(at.y, n - 1u))
                           : uvec2(min(at.x, end - 1u), min(at.y / V_LANES, n / V_LANES - 1u));
        v.right[q] = b[b_from + B_PLACE(at.x, at.y)];
    }
    return v;
}

void put_right(uint depth, uint column, T v) {
    right[depth * B_PITCH + column / 4u][column % 4u] = v;
}

// Places what was fetched for this depth, 0 past the end of k; gives its least exponents.
uvec2 put(Brought v, uint depth) {
    uvec2 least = uvec2(NO_EXPONENT);
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) {
        uvec2 at = place_left(q);
        V value = depth + at.y < end ? cleaned(v.left[q]) : V(0);
        if (A_ACROSS != 0u) {
            SET_LANES(left[at.y * A_PITCH + at.x / 4u], at.x % 4u, value)
        } else {
            PUT_LANES(put_left, at.y, at.x, value)
        }
#if !FAST
        least.x = min(least.x, least_exponent(value));
#endif
    }
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) {
        uvec2 at = place_right(q);
        V value = depth + at.x < end ? cleaned(v.right[q]) : V(0);
        if (B_ALONG != 0u) {
            PUT_LANES(put_right, at.x, at.y, value)
        } else {
            SET_LANES(right[at.x * B_PITCH + at.y / 4u], at.y % 4u, value)
        }
#if !FAST
        least.y = min(least.y, least_exponent(value));
#endif
    }
    return least;
}

void write(uint row, uint column, T4 v) {
    store_four(row, column, finish_four(row, column, v));
}
