// result (m, n) = a (m, k) b (k, n) over k in [begin, end), at most 64 x 64 of them: the sum of each run of 64
// products in a register, the sum of runs in another. A workgroup makes 64 x 64 results, an invocation 4 x 4: rows
// r + 16 i, columns c + 16 j, so that neighbours read and write side by side.
//
// The flush of small products costs as much as the products. It can change nothing where the smallest exponents of
// the staged elements of a and of b add up to the threshold's, so it is left out there.

#if T_IS_F64
#define T4 dvec4
const uint LEAST_SUM = 1077u;  // biased exponents whose product is 2^-969 or more
#else
#define T4 vec4
const uint LEAST_SUM = 152u;  // biased exponents whose product is 2^-102 or more
#endif
const uint RUN = 64u;
const uint STEP = 16u;
const uint SIDE = 64u;
const uint QUARTER = 16u;
const uint PITCH = QUARTER + 1u;  // one more, so that the columns of a do not meet in one bank
const uint NONE = 0x7fffu;

// 8.5 KiB in fp32, 17 KiB in fp64: every device with fp64 has 32.
shared T4 left[STEP * PITCH];
shared T4 right[STEP * PITCH];
shared uint least_left[2];
shared uint least_right[2];

uint exponent(T v) {
#if T_IS_F64
    uint e = (unpackDouble2x32(v).y >> 20) & 0x7ffu;
#else
    uint e = (floatBitsToUint(v) >> 23) & 0xffu;
#endif
    return e == 0u ? NONE : e;  // a canonical value with exponent 0 is zero: its products are too
}

uint least_exponent(T4 v) {
    return min(min(exponent(v.x), exponent(v.y)), min(exponent(v.z), exponent(v.w)));
}

// What one invocation brings for a step of k: four elements of a column of a, and four of a row of b.
struct Brought {
    T4 left;
    T4 right;
};

// Loads are never skipped, so that they do not wait for each other: where the matrix has ended, its edge is read.
T a_at(uint row, uint depth) {
    return a[min(row, m - 1u) * k + min(depth, end - 1u)];
}

T b_at(uint depth, uint column) {
    return b[min(depth, end - 1u) * n + min(column, n - 1u)];
}

Brought fetch(uint row, uint column, uint depth) {
    uint me = gl_LocalInvocationIndex;
    uint r = row + me / STEP;
    uint c = column + me % QUARTER;
    uint i = depth + me % STEP;
    uint j = depth + me / QUARTER;
    return Brought(
        T4(a_at(r, i), a_at(r + 16u, i), a_at(r + 32u, i), a_at(r + 48u, i)),
        T4(b_at(j, c), b_at(j, c + 16u), b_at(j, c + 32u), b_at(j, c + 48u))
    );
}

// Canonical, and 0 past the end: products of what lies past the last row or column go nowhere.
T4 cleaned(T4 v, uint depth) {
    return depth < end ? T4(canon(v.x), canon(v.y), canon(v.z), canon(v.w)) : T4(0);
}

// Places what was fetched for this depth; gives its least exponents.
uvec2 put(Brought v, uint depth) {
    uint me = gl_LocalInvocationIndex;
    v.left = cleaned(v.left, depth + me % STEP);
    v.right = cleaned(v.right, depth + me / QUARTER);
    left[me % STEP * PITCH + me / STEP] = v.left;
    right[me / QUARTER * PITCH + me % QUARTER] = v.right;
    return uvec2(least_exponent(v.left), least_exponent(v.right));
}

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
        least_left[slot ^ 1u] = NONE;
        least_right[slot ^ 1u] = NONE;
    }
    return small;
}

T4 flushed(T p, T4 q) {
    return T4(mul(p, q.x), mul(p, q.y), mul(p, q.z), mul(p, q.w));
}

// sums[i] holds the results of row r + 16 i.
void add_products(inout T4 sums[4], bool flush) {
    uint r = gl_LocalInvocationID.y;
    uint c = gl_LocalInvocationID.x;
    if (flush) {
        for (uint d = 0u; d < STEP; d++) {
            T4 p = left[d * PITCH + r];
            T4 q = right[d * PITCH + c];
            sums[0] += flushed(p.x, q);
            sums[1] += flushed(p.y, q);
            sums[2] += flushed(p.z, q);
            sums[3] += flushed(p.w, q);
        }
    } else {
        for (uint d = 0u; d < STEP; d++) {
            T4 p = left[d * PITCH + r];
            T4 q = right[d * PITCH + c];
            sums[0] += T4(p.x) * q;
            sums[1] += T4(p.y) * q;
            sums[2] += T4(p.z) * q;
            sums[3] += T4(p.w) * q;
        }
    }
}

void write(uint row, uint column, T value) {
    if (row < m && column < n) {
        uint i = row * n + column;
        T total = fresh != 0u ? value : result[i] + value;
        result[i] = last != 0u ? canon(total) : total;
    }
}

void write_row(uint row, uint column, T4 v) {
    write(row, column, v.x);
    write(row, column + 16u, v.y);
    write(row, column + 32u, v.z);
    write(row, column + 48u, v.w);
}

void multiply_tile(uint row, uint column) {
    T4 total[4] = T4[4](T4(0), T4(0), T4(0), T4(0));
    Brought ahead = Brought(T4(0), T4(0));
    if (begin < end) {
        ahead = fetch(row, column, begin);
    }
    uint slot = 0u;
    for (uint start = begin; start < end; start += RUN) {
        T4 sums[4] = T4[4](T4(0), T4(0), T4(0), T4(0));
        for (uint depth = start; depth < min(start + RUN, end); depth += STEP) {
            bool flush = must_flush(put(ahead, depth), slot);
            ahead = fetch(row, column, depth + STEP);  // on its way while the products are made
            add_products(sums, flush);
            slot ^= 1u;
            barrier();
        }
        total[0] += sums[0];
        total[1] += sums[1];
        total[2] += sums[2];
        total[3] += sums[3];
    }
    uint r = row + gl_LocalInvocationID.y;
    uint c = column + gl_LocalInvocationID.x;
    write_row(r, c, total[0]);
    write_row(r + 16u, c, total[1]);
    write_row(r + 32u, c, total[2]);
    write_row(r + 48u, c, total[3]);
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint tile = first_tile + gl_WorkGroupID.x; tile < tiles; tile += stride) {
        if (gl_LocalInvocationIndex == 0u) {
            least_left[0] = NONE;
            least_right[0] = NONE;
        }
        barrier();
        multiply_tile(tile / across * SIDE, tile % across * SIDE);
    }
}
