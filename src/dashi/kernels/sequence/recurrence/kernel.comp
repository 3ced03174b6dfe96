// Steps of a recurrent cell, one sequence of one direction per workgroup: its state stays in shared memory, the weights
// are read once a step, units side by side. _cells.py says what a step is.
#include "cells.glsl"

const uint RUN = 64u;
const uint BATCH = 4u;  // rows of weights that are read before they are used
const uint RNN = 0u;
const uint GRU = 1u;
const uint GRU_RESET_AFTER = 2u;
const uint LSTM_PEEPHOLE = 4u;

shared T state[2u * UNITS];  // h before and after the step
shared T other[UNITS];       // c of an LSTM; r h of a GRU

// The state times the weights of some gates of unit j, and their bias. A row past the end adds 0, which changes no sum.
#define GATE_SUMS(LOW, HIGH, VALUE) \
    for (uint run = 0u; run < h; run += RUN) { \
        T sums[4] = T[4](T(0), T(0), T(0), T(0)); \
        uint end = min(run + RUN, h); \
        for (uint first = run; first < end; first += BATCH) { \
            T some[4u * BATCH]; \
            [[unroll]] for (uint e = 0u; e < BATCH; e++) { \
                uint at = (direction * h + min(first + e, h - 1u)) * gh + j; \
                [[unroll]] for (uint g = LOW; g < HIGH; g++) { \
                    some[4u * e + g] = weights[at + g * h]; \
                } \
            } \
            [[unroll]] for (uint e = 0u; e < BATCH; e++) { \
                uint k = min(first + e, h - 1u); \
                T value = VALUE; \
                [[unroll]] for (uint g = LOW; g < HIGH; g++) { \
                    T product = mul(value, canon(some[4u * e + g])); \
                    sums[g] += first + e < end ? product : T(0); \
                } \
            } \
        } \
        [[unroll]] for (uint g = LOW; g < HIGH; g++) { \
            totals[g] += sums[g]; \
        } \
    } \
    [[unroll]] for (uint g = LOW; g < HIGH; g++) { \
        totals[g] += canon(bias[direction * gh + g * h + j]); \
    }

T limited(T x) {
    T most = canon(clip);
    T inside = x < -most ? -most : (x > most ? most : x);
    return most > T(0) && !is_nan_bits(x) ? inside : x;
}

T first_activation(T x) {
    return cell_activation(ACTIVATION_0, limited(x), alpha_0, beta_0);
}

T second_activation(T x) {
    return cell_activation(ACTIVATION_1, limited(x), alpha_1, beta_1);
}

T mixed(T z, T n, T before) {
    return canon(mul(canon(T(1) - z), n) + mul(z, before));
}

void main() {
    uint me = gl_LocalInvocationIndex;
    uint row = first_row + gl_WorkGroupID.x;
    uint direction = row / b;
    uint item = row % b;
    uint length = min(lengths[item], steps);
    bool reversed = (reverse >> direction & 1u) != 0u;
    uint block = d * b * h;  // elements of a step of the result
    for (uint j = me; j < h; j += LANES) {
        uint at = row * h + j;
        state[j] = canon(begin == 0u ? start_h[at] : result[steps * block + at]);
        if (CELL > GRU_RESET_AFTER) {
            other[j] = canon(begin == 0u ? start_c[at] : result[(steps + 1u) * block + at]);
        }
    }
    barrier();
    uint slot = 0u;
    for (uint step = begin; step < end_step; step++) {
        if (step >= length) {
            for (uint j = me; j < h; j += LANES) {
                result[step * block + row * h + j] = T(0);
            }
            continue;
        }
        uint t = reversed ? length - 1u - step : step;
        uint from = slot * UNITS;
        uint to = UNITS - from;
        uint input_at = ((direction * steps + t) * b + item) * gh;
        for (uint j = me; j < h; j += LANES) {
            T totals[4] = T[4](T(0), T(0), T(0), T(0));
            if (CELL == GRU) {
                GATE_SUMS(0u, 2u, state[from + k])
            } else {
                GATE_SUMS(0u, GATES, state[from + k])
            }
            T before[4];
            [[unroll]] for (uint g = 0u; g < GATES; g++) {
                before[g] = canon(x[input_at + g * h + j]);
            }
            T h_before = state[from + j];
            T h_after;
            if (CELL == RNN) {
                h_after = first_activation(canon(before[0] + canon(totals[0])));
            } else if (CELL <= GRU_RESET_AFTER) {
                T z = first_activation(canon(before[0] + canon(totals[0])));
                T r = first_activation(canon(before[1] + canon(totals[1])));
                if (CELL == GRU) {
                    other[j] = mul(r, h_before);
                    h_after = z;
                } else {
                    h_after = mixed(z, second_activation(canon(before[2] + mul(r, canon(totals[2])))), h_before);
                }
            } else {
                T gates[4];
                [[unroll]] for (uint g = 0u; g < 4u; g++) {
                    gates[g] = canon(before[g] + canon(totals[g]));
                }
                T c_before = other[j];
                uint weight = direction * q + j;
                if (CELL == LSTM_PEEPHOLE) {
                    gates[0] = canon(gates[0] + mul(canon(peephole[weight]), c_before));
                    gates[2] = canon(gates[2] + mul(canon(peephole[weight + 2u * h]), c_before));
                }
                T i = first_activation(gates[0]);
                T f = first_activation(gates[2]);
                T c = canon(mul(f, c_before) + mul(i, second_activation(gates[3])));
                if (CELL == LSTM_PEEPHOLE) {
                    gates[1] = canon(gates[1] + mul(canon(peephole[weight + h]), c));
                }
                T o = first_activation(gates[1]);
                h_after = mul(o, cell_activation(ACTIVATION_2, c, alpha_2, beta_2));
                other[j] = c;
            }
            state[to + j] = canon(h_after);
        }
        barrier();
        if (CELL == GRU) {
            for (uint j = me; j < h; j += LANES) {
                T totals[4] = T[4](T(0), T(0), T(0), T(0));
                GATE_SUMS(2u, 3u, other[k])
                T n = second_activation(canon(canon(x[input_at + 2u * h + j]) + canon(totals[2])));
                state[to + j] = mixed(state[to + j], n, state[from + j]);
            }
            barrier();
        }
        for (uint j = me; j < h; j += LANES) {
            result[t * block + row * h + j] = state[to + j];
        }
        slot ^= 1u;
    }
    for (uint j = me; j < h; j += LANES) {
        result[steps * block + row * h + j] = state[slot * UNITS + j];
        if (CELL > GRU_RESET_AFTER) {
            result[(steps + 1u) * block + row * h + j] = other[j];
        }
    }
}
