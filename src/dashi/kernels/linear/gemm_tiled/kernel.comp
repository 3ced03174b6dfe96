// result (m, n) = a (m, k) b (k, n) over k in [begin, end), at most 64 x 64 of them: the sum of each run of 64
// products in a register, the sum of runs in another. A workgroup makes 64 x 64 results, an invocation 4 x 4: rows
// r + 16 i, columns c + 16 j, so that neighbours read and write side by side.
//
// The flush of small products costs as much as the products. It can change nothing where the smallest exponents of
// the staged elements of a and of b add up to the threshold's, so it is left out there.

#if T_IS_F64
#define T4 dvec4
const uint STEP = 8u;
const uint LEAST_SUM = 1077u;  // biased exponents whose product is 2^-969 or more
#else
#define T4 vec4
const uint STEP = 16u;
const uint LEAST_SUM = 152u;  // biased exponents whose product is 2^-102 or more
#endif
const uint RUN = 64u;
const uint SIDE = 64u;
const uint QUARTER = 16u;
const uint PITCH = QUARTER + 1u;  // one more, so that the columns of a do not meet in one bank
const uint NONE = 0x7fffu;

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

T a_at(uint row, uint depth) {
    return row < m && depth < end ? canon(a[row * k + depth]) : T(0);
}

T b_at(uint depth, uint column) {
    return depth < end && column < n ? canon(b[depth * n + column]) : T(0);
}

// Brings STEP columns of a and rows of b into shared memory; gives the least exponents of what this invocation brought.
uvec2 stage(uint row, uint column, uint start) {
    uvec2 least = uvec2(NONE);
    for (uint slot = gl_LocalInvocationIndex; slot < 2u * STEP * QUARTER; slot += 256u) {
        if (slot < STEP * QUARTER) {
            uint d = start + slot % STEP;
            uint r = row + slot / STEP;
            T4 v = T4(a_at(r, d), a_at(r + 16u, d), a_at(r + 32u, d), a_at(r + 48u, d));
            left[slot % STEP * PITCH + slot / STEP] = v;
            least.x = least_exponent(v);
        } else {
            uint d = slot / QUARTER - STEP;
            uint c = column + slot % QUARTER;
            T4 v = T4(b_at(start + d, c), b_at(start + d, c + 16u), b_at(start + d, c + 32u), b_at(start + d, c + 48u));
            right[d * PITCH + slot % QUARTER] = v;
            least.y = least_exponent(v);
        }
    }
    return least;
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
    uint slot = 0u;
    for (uint start = begin; start < end; start += RUN) {
        T4 sums[4] = T4[4](T4(0), T4(0), T4(0), T4(0));
        for (uint d = start; d < min(start + RUN, end); d += STEP) {
            uvec2 least = stage(row, column, d);
            add_products(sums, must_flush(least, slot));
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
