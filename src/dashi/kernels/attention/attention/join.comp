// Joins the runs of 64 keys that workgroups have summed apart: 32 columns of a row, LOCAL / 32 groups of 64 runs at a time.
const uint RUN = 64u;
const uint COLUMNS = 32u;
const uint LANES = LOCAL / COLUMNS;
const uint AHEAD = 8u;

#include "special_numbers.glsl"

shared T tops[LOCAL];
shared T factors[LANES * RUN];  // exp(m - M); -0 where no key of the run counts
shared T sums[LOCAL];
shared T weights[LOCAL];

// The largest score of a row.
T largest_of(uint row) {
    uint me = gl_LocalInvocationIndex;
    T top = minus_infinity();
    for (uint run = me; run < runs; run += LOCAL) {
        top = larger(top, peaks[row * runs + run]);
    }
    tops[me] = top;
    barrier();
    for (uint half_of = LOCAL / 2u; half_of > 0u; half_of /= 2u) {
        if (me < half_of) {
            tops[me] = larger(tops[me], tops[me + half_of]);
        }
        barrier();
    }
    top = tops[0];
    barrier();
    return top;
}

T scaled(T factor, T part) {
    return is_left_out(factor) ? T(0) : mul(factor, part);
}

void main() {
    uint me = gl_LocalInvocationIndex;
    uint lane = me / COLUMNS;
    uint parts = (D + COLUMNS - 1u) / COLUMNS;
    for (uint number = first_block + gl_WorkGroupID.x; number < blocks; number += stride) {
        uint row = number / parts;
        uint d = number % parts * COLUMNS + me % COLUMNS;
        uint column = min(d, D - 1u);
        T top = largest_of(row);
        T total = T(0);
        T whole = T(0);
        for (uint first = 0u; first * RUN < runs; first += LANES) {
            for (uint i = me; i < LANES * RUN; i += LOCAL) {
                uint run = first * RUN + i;
                T m = run < runs ? peaks[row * runs + min(run, runs - 1u)] : minus_infinity();
                factors[i] = m == minus_infinity() ? minus_zero() : p_exp(m - top);
            }
            barrier();
            T sum = T(0);
            T weight = T(0);
            for (uint start = 0u; start < RUN; start += AHEAD) {
                [[unroll]] for (uint e = 0u; e < AHEAD; e++) {
                    uint run = min((first + lane) * RUN + start + e, runs - 1u);
                    uint from = (row * runs + run) * (D + 1u);
                    T factor = factors[lane * RUN + start + e];
                    sum += scaled(factor, carried[from + column]);
                    weight += scaled(factor, carried[from + D]);
                }
            }
            sums[me] = sum;
            weights[me] = weight;
            barrier();
            if (lane == 0u) {
                for (uint i = me; i < LOCAL; i += COLUMNS) {
                    total += sums[i];
                    whole += weights[i];
                }
            }
            barrier();
        }
        if (lane == 0u && d < D) {
            uint head = row / sq % heads;
            uint to = row / sq / heads * r_batch + head * r_head + row % sq * r_step + d;
            result[to] = top == minus_infinity() ? T(0) : canon(p_divide(total, whole));
        }
    }
}
