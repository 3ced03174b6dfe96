// Many steps of z' = psi(z A + b), one state per workgroup: the state goes round in shared memory, the operator is read
// from memory, coalesced, once a step.

#include "row_times.glsl"
#include "psi.glsl"

shared T staged[2u * LENGTH];
shared uint least;
shared uint careful[2];  // the last step that starts from a value so small that products must be flushed

#define COLUMN_SUM(MUL) \
    for (uint start = 0u; start < d; start += RUN * RUN) { \
        T tile = T(0); \
        uint beyond = min(start + RUN * RUN, d); \
        for (uint run = start; run < beyond; run += RUN) { \
            T sum = T(0); \
            uint at = run * d + j; \
            if (run + RUN <= d) { \
                for (uint k = run; k < run + RUN; k += BATCH) { \
                    T some[BATCH]; \
                    [[unroll]] for (uint q = 0u; q < BATCH; q++) { \
                        some[q] = canon(A[at + q * d]); \
                    } \
                    [[unroll]] for (uint q = 0u; q < BATCH; q++) { \
                        sum += MUL(staged[from + k + q], some[q]); \
                    } \
                    at += BATCH * d; \
                } \
            } else { \
                for (uint k = run; k < d; k++) { \
                    sum += MUL(staged[from + k], canon(A[at])); \
                    at += d; \
                } \
            } \
            tile += sum; \
        } \
        total += tile; \
    }

void main() {
    uint me = gl_LocalInvocationIndex;
    uint row = first_row + gl_WorkGroupID.x;
    uint smallest = NO_EXPONENT;
    for (uint j = me; j < d; j += LANES) {
        for (uint k = 0u; k < d; k++) {
            smallest = min(smallest, exponent_of(canon(A[k * d + j])));
        }
    }
    if (me == 0u) {
        least = NO_EXPONENT;
        careful[0] = careful[1] = 0xffffffffu;
    }
    barrier();
    atomicMin(least, smallest);
    barrier();
    uint below = least >= LEAST_SUM ? 0u : LEAST_SUM - least;
    for (uint j = me; j < d; j += LANES) {
        T value = canon(source[row * d + j]);
        staged[j] = value;
        if (exponent_of(value) < below) {
            careful[0] = 0u;
        }
    }
    barrier();
    for (uint step = 0u; step < steps; step++) {
        uint slot = step & 1u;
        uint from = slot * LENGTH;
        bool flush = careful[slot] == step;
        for (uint j = me; j < d; j += LANES) {
            T total = T(0);
            if (flush) {
                COLUMN_SUM(mul)
            } else {
                COLUMN_SUM(PLAIN_MUL)
            }
            total += canon(b[j]);
            T value = PSI == 0u ? canon(total) : apply_psi(PSI, total, alpha, low, high);
            staged[(1u - slot) * LENGTH + j] = value;
            if (exponent_of(value) < below) {
                careful[1u - slot] = step + 1u;
            }
        }
        barrier();
    }
    for (uint j = me; j < d; j += LANES) {
        result[row * d + j] = staged[(steps & 1u) * LENGTH + j];
    }
}
