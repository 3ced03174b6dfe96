// Many steps of z' = psi(z A + b) in one dispatch over several workgroups that all run at once. A workgroup makes OUTS
// values of the next state; of the RUNS_EACH runs of 64 rows of A that an invocation adds up, the first stays in
// registers. There is no barrier between workgroups: a value is stored together with the number of its step as
// one 64-bit word, and readers poll the words until their step has come. Two sets of words are enough: nobody can be two
// steps ahead of a workgroup whose values it needs. Polls are bounded; the flag tells of one that ran out.

#pragma use_vulkan_memory_model
#include "row_times.glsl"
#include "psi.glsl"

const uint HELD = 1u;  // runs whose elements of A stay in registers; the others are read once a step
const uint SPINS = 1u << 20;
const uint POLLED = RUN / OUTS;  // values of a run that an invocation polls
const uint WORDS = T_IS_F64 != 0 ? 2u : 1u;
const uint RUN_ROWS = LANES / OUTS;
const uint RUNS = RUN_ROWS * RUNS_EACH;

shared P staged[RUNS * RUN_PITCH];
shared T sums[2u * RUNS * OUTS];
shared uint least;                   // exponent of the smallest element of A here
shared uint careful[2u * RUN_ROWS];  // the last step whose runs hold a value so small that products must be flushed
shared uint failed[2];

uint64_t peek(uint at) {
    return atomicLoad(words[at], gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelaxed);
}

void post(uint at, uint step, uint bits) {
    atomicStore(words[at], (uint64_t(step) << 32) | uint64_t(bits), gl_ScopeDevice, gl_StorageSemanticsBuffer,
                gl_SemanticsRelaxed);
}

bool tagged(uint64_t word, uint step) {
    return uint(word >> 32) == step;
}

// An invocation is a place among the outputs, and a row of runs.
uint my_output() {
    return gl_LocalInvocationIndex % OUTS;
}

uint my_row() {
    return gl_LocalInvocationIndex / OUTS;
}

// Puts value k of a run into its place.
void stage(uint run, uint k, T value, uint step, uint below) {
    staged[run * RUN_PITCH + k / P_LANES][k % P_LANES] = value;
    if (exponent_of(value) < below) {
        careful[(step & 1u) * RUN_ROWS + my_row()] = step;
    }
}

// Whether a poll ran out anywhere.
bool gave_up() {
    return atomicLoad(flag[0], gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelaxed) != 0u;
}

// Brings the values of step `step` that this invocation is to stage; false if they did not come.
bool bring(uint run, uint base, uint step, uint below) {
    uint64_t seen[POLLED * WORDS];
    uint from = base + (step & 1u) * parity;
    for (uint spin = 0u; spin < SPINS; spin++) {
        bool all = true;
        [[unroll]] for (uint q = 0u; q < POLLED; q++) {
            uint k = min(run * RUN + q * OUTS + my_output(), d - 1u);
            [[unroll]] for (uint w = 0u; w < WORDS; w++) {
                seen[q * WORDS + w] = peek(from + k * WORDS + w);
            }
        }
        [[unroll]] for (uint q = 0u; q < POLLED * WORDS; q++) {
            all = all && tagged(seen[q], step);
        }
        if (all) {
            [[unroll]] for (uint q = 0u; q < POLLED; q++) {
                uint k = q * OUTS + my_output();
#if T_IS_F64
                T value = packDouble2x32(uvec2(uint(seen[q * 2u]), uint(seen[q * 2u + 1u])));
#else
                T value = uintBitsToFloat(uint(seen[q]));
#endif
                stage(run, k, run * RUN + k < d ? value : T(0), step, below);
            }
            return true;
        }
        if ((spin & 1023u) == 1023u && gave_up()) {
            break;
        }
    }
    return false;
}

void main() {
    uint me = gl_LocalInvocationIndex;
    uint x = my_output();
    uint y = my_row();
    uint row = gl_WorkGroupID.x / across;
    uint j = gl_WorkGroupID.x % across * OUTS + x;
    uint near = min(j, d - 1u);
    uint base = row * d * WORDS;

    T held[HELD * RUN];
    uint smallest = NO_EXPONENT;
    [[unroll]] for (uint i = 0u; i < HELD; i++) {
        [[unroll]] for (uint k = 0u; k < RUN; k++) {
            uint at = (y + i * RUN_ROWS) * RUN + k;
            T a = canon(A[min(at, d - 1u) * d + near]);
            held[i * RUN + k] = at < d ? a : T(0);
            smallest = min(smallest, exponent_of(held[i * RUN + k]));
        }
    }
    for (uint i = HELD; i < RUNS_EACH; i++) {
        for (uint at = (y + i * RUN_ROWS) * RUN; at < min((y + i * RUN_ROWS + 1u) * RUN, d); at++) {
            smallest = min(smallest, exponent_of(canon(A[at * d + near])));
        }
    }
    if (me == 0u) {
        least = NO_EXPONENT;
        failed[0] = failed[1] = 0u;
    }
    if (x == 0u) {
        careful[y] = careful[RUN_ROWS + y] = 0xffffffffu;
    }
    barrier();
    atomicMin(least, smallest);
    barrier();
    uint below = least >= LEAST_SUM ? 0u : LEAST_SUM - least;
    T bias = canon(b[near]);

    for (uint step = first; step < last; step++) {
        uint slot = step & 1u;
        [[unroll]] for (uint i = 0u; i < RUNS_EACH; i++) {
            uint run = y + i * RUN_ROWS;
            if (step == first) {
                [[unroll]] for (uint q = 0u; q < POLLED; q++) {
                    uint k = q * OUTS + x;
                    uint at = run * RUN + k;
                    stage(run, k, at < d ? canon(source[row * d + at]) : T(0), step, below);
                }
            } else if (run * RUN < d && !bring(run, base, step, below)) {
                failed[slot] = step;
            }
        }
#if ALONE
        // A row of runs lies within one subgroup, which needs nothing that others stage.
        subgroupMemoryBarrierShared();
        subgroupBarrier();
#else
        barrier();
#endif
        bool flush = careful[slot * RUN_ROWS + y] == step;
        [[unroll]] for (uint i = 0u; i < HELD; i++) {
            uint from = (y + i * RUN_ROWS) * RUN_PITCH;
            T total = T(0);
            if (flush) {
                [[unroll]] for (uint q = 0u; q < RUN_VECTORS; q++) {
                    P v = staged[from + q];
                    ADD_PRODUCTS(total, v, held, i * RUN + q * P_LANES, mul)
                }
            } else {
                [[unroll]] for (uint q = 0u; q < RUN_VECTORS; q++) {
                    P v = staged[from + q];
                    ADD_PRODUCTS(total, v, held, i * RUN + q * P_LANES, PLAIN_MUL)
                }
            }
            sums[slot * RUNS * OUTS + (y + i * RUN_ROWS) * OUTS + x] = total;
        }
        for (uint i = HELD; i < RUNS_EACH; i++) {
            uint run = y + i * RUN_ROWS;
            T total = T(0);
            for (uint q = 0u; q < RUN_VECTORS; q += 4u) {
                T some[4u * P_LANES];
                [[unroll]] for (uint k = 0u; k < 4u * P_LANES; k++) {
                    uint at = run * RUN + q * P_LANES + k;
                    T a = A[min(at, d - 1u) * d + near];
                    some[k] = at < d ? canon(a) : T(0);
                }
                [[unroll]] for (uint k = 0u; k < 4u; k++) {
                    P v = staged[run * RUN_PITCH + q + k];
                    ADD_PRODUCTS(total, v, some, k * P_LANES, mul)
                }
            }
            sums[slot * RUNS * OUTS + run * OUTS + x] = total;
        }
        barrier();
        bool stop = failed[slot] == step && step != first;
        if (stop) {
            if (me == 0u) {
                atomicStore(flag[0], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelaxed);
            }
            break;
        }
        if (y == 0u && j < d) {
            T total = T(0);
            [[unroll]] for (uint run = 0u; run < RUNS; run++) {
                total += sums[slot * RUNS * OUTS + run * OUTS + x];
            }
            T value = PSI == 0u ? canon(total + bias) : apply_psi(PSI, total + bias, alpha, low, high);
            uint at = base + ((step + 1u) & 1u) * parity + j * WORDS;
#if T_IS_F64
            uvec2 bits = unpackDouble2x32(value);
            post(at, step + 1u, bits.x);
            post(at + 1u, step + 1u, bits.y);
#else
            post(at, step + 1u, floatBitsToUint(value));
#endif
            if (step + 1u == last) {
                result[row * d + j] = value;
            }
        }
    }
}
