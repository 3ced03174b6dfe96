// Many steps of z' = psi(z A + b) for many states in one dispatch. Groups of workgroups share the states out among
// them; a workgroup makes EACH * OUTS values of each state of its group, SET states at a time, with the columns of A for
// them in registers, EACH per invocation. With FAST 1 products and sums are fused by fma. Values pass between workgroups
// as in kernel.comp: words tagged with their step, here from the beginning,
// since the words of the first states are made before. While some states are multiplied, the words of the next are on
// their way; they were written long before, so a poll seldom waits.

#pragma use_vulkan_memory_model
#include "row_times.glsl"
#include "psi.glsl"

const uint SPINS = 1u << 20;
const uint POLLED = RUN / OUTS;  // values of a run that an invocation polls
const uint WORDS = T_IS_F64 != 0 ? 2u : 1u;
const uint RUNS = LANES / OUTS;
const uint SEEN = SET * POLLED * WORDS;
const uint FINISHED = (SET * EACH * OUTS + LANES - 1u) / LANES;  // values that an invocation finishes

shared P staged[SET * RUNS * RUN_PITCH];
shared T sums[2u * SET * RUNS * EACH * OUTS];
shared uint least;               // exponent of the smallest element of A here
shared uint careful[2u * RUNS];  // the last turn whose run holds a value so small that products must be flushed
shared uint failed[2];

uint64_t peek(uint at) {
    return atomicLoad(words[at], gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelaxed);
}

void post(uint at, uint step, uint bits) {
    atomicStore(words[at], (uint64_t(step + 1u) << 32) | uint64_t(bits), gl_ScopeDevice, gl_StorageSemanticsBuffer,
                gl_SemanticsRelaxed);
}

bool gave_up() {
    return atomicLoad(flag[0], gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelaxed) != 0u;
}

// Asks for the words of a set of states; past the last state the last one is asked for again.
#define ASK(seen, step, state) \
    [[unroll]] for (uint s = 0u; s < SET; s++) { \
        uint from = min((state) + s, beyond - 1u) * d * WORDS + ((step) & 1u) * parity; \
        [[unroll]] for (uint q = 0u; q < POLLED; q++) { \
            uint k = min(y * RUN + q * OUTS + x, d - 1u); \
            [[unroll]] for (uint w = 0u; w < WORDS; w++) { \
                seen[(s * POLLED + q) * WORDS + w] = peek(from + k * WORDS + w); \
            } \
        } \
    }

#define ADD_SET(MUL) \
    [[unroll]] for (uint q = 0u; q < RUN_VECTORS; q++) { \
        [[unroll]] for (uint s = 0u; s < SET; s++) { \
            P v = staged[(s * RUNS + y) * RUN_PITCH + q]; \
            [[unroll]] for (uint e = 0u; e < EACH; e++) { \
                ADD_PRODUCTS(total[s * EACH + e], v, held, e * RUN + q * P_LANES, MUL) \
            } \
        } \
    }
#if FAST
#define ADD_FUSED \
    [[unroll]] for (uint q = 0u; q < RUN_VECTORS; q++) { \
        [[unroll]] for (uint s = 0u; s < SET; s++) { \
            P v = staged[(s * RUNS + y) * RUN_PITCH + q]; \
            [[unroll]] for (uint e = 0u; e < EACH; e++) { \
                [[unroll]] for (uint l = 0u; l < P_LANES; l++) { \
                    total[s * EACH + e] = fma(v[l], held[e * RUN + q * P_LANES + l], total[s * EACH + e]); \
                } \
            } \
        } \
    }
#endif

void main() {
    uint me = gl_LocalInvocationIndex;
    uint x = me % OUTS;
    uint y = me / OUTS;
    uint group = gl_WorkGroupID.x / across;
    uint begin = group * share;
    uint beyond = min(begin + share, m);
    uint column = gl_WorkGroupID.x % across * EACH * OUTS;

    T held[EACH * RUN];
    uint smallest = NO_EXPONENT;
    [[unroll]] for (uint e = 0u; e < EACH; e++) {
        uint near = min(column + e * OUTS + x, d - 1u);
        [[unroll]] for (uint k = 0u; k < RUN; k++) {
            uint at = y * RUN + k;
            T a = canon(A[min(at, d - 1u) * d + near]);
            held[e * RUN + k] = at < d ? a : T(0);
            smallest = min(smallest, exponent_of(held[e * RUN + k]));
        }
    }
    if (me == 0u) {
        least = NO_EXPONENT;
        failed[0] = failed[1] = 0xffffffffu;
    }
    if (x == 0u) {
        careful[y] = careful[RUNS + y] = 0xffffffffu;
    }
    barrier();
    atomicMin(least, smallest);
    barrier();
    uint below = least >= LEAST_SUM ? 0u : LEAST_SUM - least;

    // What an invocation finishes lies in the same columns every time.
    T bias[FINISHED];
    [[unroll]] for (uint f = 0u; f < FINISHED; f++) {
        bias[f] = canon(b[min(column + (me + f * LANES) / OUTS % EACH * OUTS + x, d - 1u)]);
    }

    uint64_t seen[SEEN];
    ASK(seen, first, begin)
    uint turn = 0u;
    bool stop = begin >= beyond;
    for (uint step = first; step < last && !stop; step++) {
        for (uint state = begin; state < beyond && !stop; state += SET) {
            uint slot = turn & 1u;
            bool all = false;
            for (uint spin = 0u; spin < SPINS; spin++) {
                all = true;
                [[unroll]] for (uint q = 0u; q < SEEN; q++) {
                    all = all && uint(seen[q] >> 32) == step + 1u;
                }
                if (all || ((spin & 1023u) == 1023u && gave_up())) {
                    break;
                }
                ASK(seen, step, state)
            }
            if (!all) {
                failed[slot] = turn;
            }
            // A row of runs lies within one subgroup: nobody else reads what it stages.
            subgroupBarrier();
            [[unroll]] for (uint s = 0u; s < SET; s++) {
                [[unroll]] for (uint q = 0u; q < POLLED; q++) {
                    uint k = q * OUTS + x;
#if T_IS_F64
                    T value = packDouble2x32(uvec2(uint(seen[(s * POLLED + q) * 2u]), uint(seen[(s * POLLED + q) * 2u + 1u])));
#else
                    T value = uintBitsToFloat(uint(seen[s * POLLED + q]));
#endif
                    value = y * RUN + k < d ? value : T(0);
                    staged[(s * RUNS + y) * RUN_PITCH + k / P_LANES][k % P_LANES] = value;
#if !FAST
                    if (exponent_of(value) < below) {
                        careful[slot * RUNS + y] = turn;
                    }
#endif
                }
            }
            subgroupMemoryBarrierShared();
            subgroupBarrier();
            uint next = state + SET < beyond ? state + SET : begin;
            ASK(seen, next == begin ? step + 1u : step, next)
            T total[SET * EACH];
            [[unroll]] for (uint s = 0u; s < SET * EACH; s++) {
                total[s] = T(0);
            }
#if FAST
            ADD_FUSED
#else
            if (careful[slot * RUNS + y] == turn) {
                ADD_SET(mul)
            } else {
                ADD_SET(PLAIN_MUL)
            }
#endif
            [[unroll]] for (uint s = 0u; s < SET * EACH; s++) {
                sums[((slot * SET * EACH + s) * RUNS + y) * OUTS + x] = total[s];
            }
            barrier();
            stop = failed[slot] == turn;
            [[unroll]] for (uint f = 0u; f < FINISHED; f++) {
                uint i = me + f * LANES;
                if (stop || i >= SET * EACH * OUTS) {
                    break;
                }
                uint s = i / OUTS / EACH;
                uint j = column + i / OUTS % EACH * OUTS + x;
                T whole = T(0);
                [[unroll]] for (uint run = 0u; run < RUNS; run++) {
                    whole += sums[((slot * SET * EACH + i / OUTS) * RUNS + run) * OUTS + x];
                }
                whole += bias[f];
                T value = PSI == 0u ? canon(whole) : apply_psi(PSI, whole, alpha, low, high);
                if (j < d && state + s < beyond) {
                    uint at = (state + s) * d;
                    uint to = (at + j) * WORDS + ((step + 1u) & 1u) * parity;
#if T_IS_F64
                    uvec2 bits = unpackDouble2x32(value);
                    post(to, step + 1u, bits.x);
                    post(to + 1u, step + 1u, bits.y);
#else
                    post(to, step + 1u, floatBitsToUint(value));
#endif
                    if (step + 1u == last) {
                        result[at + j] = value;
                    }
                }
            }
            turn++;
        }
    }
    if (stop && begin < beyond && me == 0u) {
        atomicStore(flag[0], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelaxed);
    }
}
