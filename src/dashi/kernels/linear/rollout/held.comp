// Many steps of z' = psi(z A + b), one state per workgroup: an invocation holds a column of A in registers, RUNS runs of
// 64 rows of it, and the state goes round in shared memory.

#include "row_times.glsl"
#include "psi.glsl"

shared P staged[2u * RUNS * RUN_PITCH];
shared uint least;
shared uint careful[2];  // the last step that starts from a value so small that products must be flushed

void main() {
    uint j = gl_LocalInvocationIndex;
    uint near = min(j, d - 1u);
    uint row = first_row + gl_WorkGroupID.x;
    T held[RUNS * RUN];
    uint smallest = NO_EXPONENT;
    [[unroll]] for (uint k = 0u; k < RUNS * RUN; k++) {
        T a = canon(A[min(k, d - 1u) * d + near]);
        held[k] = k < d ? a : T(0);
        smallest = min(smallest, exponent_of(held[k]));
    }
    T bias = canon(b[near]);
    T value = j < d ? canon(source[row * d + near]) : T(0);
    uint place = j / RUN * RUN_PITCH + j % RUN / P_LANES;
    if (j == 0u) {
        least = NO_EXPONENT;
        careful[0] = careful[1] = 0xffffffffu;
    }
    barrier();
    atomicMin(least, smallest);
    barrier();
    uint below = least >= LEAST_SUM ? 0u : LEAST_SUM - least;
    // The state is written at first for step 0; staged[] of odd steps lies behind that of even ones.
    staged[place][j % P_LANES] = value;
    staged[RUNS * RUN_PITCH + place][j % P_LANES] = T(0);
    if (exponent_of(value) < below) {
        careful[0] = 0u;
    }
    barrier();
    for (uint step = 0u; step < steps; step++) {
        uint slot = step & 1u;
        uint from = slot * RUNS * RUN_PITCH;
        T sums[RUNS];
        [[unroll]] for (uint i = 0u; i < RUNS; i++) {
            sums[i] = T(0);
        }
        // Runs side by side: their sums do not wait for each other.
        if (careful[slot] == step) {
            [[unroll]] for (uint q = 0u; q < RUN_VECTORS; q++) {
                [[unroll]] for (uint i = 0u; i < RUNS; i++) {
                    P v = staged[from + i * RUN_PITCH + q];
                    ADD_PRODUCTS(sums[i], v, held, i * RUN + q * P_LANES, mul)
                }
            }
        } else {
            [[unroll]] for (uint q = 0u; q < RUN_VECTORS; q++) {
                [[unroll]] for (uint i = 0u; i < RUNS; i++) {
                    P v = staged[from + i * RUN_PITCH + q];
                    ADD_PRODUCTS(sums[i], v, held, i * RUN + q * P_LANES, PLAIN_MUL)
                }
            }
        }
        T total = T(0);
        [[unroll]] for (uint i = 0u; i < RUNS; i++) {
            total += sums[i];
        }
        value = PSI == 0u ? canon(total + bias) : apply_psi(PSI, total + bias, alpha, low, high);
        if (j < d) {
            staged[(1u - slot) * RUNS * RUN_PITCH + place][j % P_LANES] = value;
            if (exponent_of(value) < below) {
                careful[1u - slot] = step + 1u;
            }
        }
        barrier();
    }
    if (j < d) {
        result[row * d + j] = value;
    }
}
