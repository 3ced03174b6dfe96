// Attention of a block of query rows: the heads that share keys, one behind another. _attention.py plans it and says what
// is computed. A workgroup is LOCAL / 16 groups of four rows by 16 groups of four keys; runs of 64 keys pass by, once for
// their maxima and once for the sums, 16 of D at a time. A key that does not count for a row has the weight -0: a product
// with it changes no sum where values are finite, and is left out where they are not.
const uint RUN = 64u;
const uint SLICE = 16u;
const uint GROUPS = LOCAL / 16u;
const uint ROWS = GROUPS * 4u;
const uint SLICES = (D + SLICE - 1u) / SLICE;
const uint WIDE = EACH * 16u;                  // columns of values that are worked on at a time, EACH by an invocation
const uint DEEP = RUN * SLICE / WIDE;          // keys of which so many columns are staged
const uint PARTS = (D + WIDE - 1u) / WIDE;
const uint Q_PITCH = GROUPS + 1u;
const uint K_PITCH = RUN / 4u + 1u;
const uint W_PITCH = GROUPS + 1u;
const uint K_BROUGHT = RUN * SLICE / LOCAL;
const uint AT_ONCE = K_BROUGHT < 8u ? K_BROUGHT : 8u;

const uint FIND_PEAKS = 1u;
const uint ADD_UP = 2u;
const uint PEAKS_IN = 4u;
const uint PEAKS_OUT = 8u;
const uint SUMS_IN = 16u;
const uint SUMS_OUT = 32u;
const uint FINISH = 64u;
const uint SPLIT = 128u;  // each run is a block of its own, and join.comp puts them together

#if T_IS_F64
#define T4 dvec4
#else
#define T4 vec4
#endif

#include "special_numbers.glsl"
#include "counted_keys.glsl"

shared T4 q_tile[SLICE * Q_PITCH];   // [d][row / 4]; then maxima by [key / 4][row / 4]
shared T4 tile[SLICE * K_PITCH];     // keys [d][key / 4], or values [key][column / 4]
shared T4 weights[HELD * RUN * W_PITCH];  // [run][key][row / 4]: scores, then weights
shared T run_peaks[HELD * ROWS];     // the largest scores of runs, by row
shared T4 factors[GROUPS];           // of rows
shared uint careful[2];              // whether what is staged needs its products flushed, or selected
shared uint small_weights[2];

T4 mul4(T4 x, T y) {
    return T4(mul(x.x, y), mul(x.y, y), mul(x.z, y), mul(x.w, y));
}

T4 product4(T4 x, T4 y) {
    return T4(mul(x.x, y.x), mul(x.y, y.y), mul(x.z, y.z), mul(x.w, y.w));
}

T4 canon4(T4 x) {
    return T4(canon(x.x), canon(x.y), canon(x.z), canon(x.w));
}

T selected(T w, T v) {
    return is_left_out(w) ? T(0) : mul(w, v);
}

T4 selected4(T4 w, T v) {
    return T4(selected(w.x, v), selected(w.y, v), selected(w.z, v), selected(w.w, v));
}

void stage_keys(Block at, uint run, uint slice, uint turn) {
    uint me = gl_LocalInvocationIndex;
    bool small = false;
    for (uint start = 0u; start < K_BROUGHT; start += AT_ONCE) {
        [[unroll]] for (uint e = 0u; e < AT_ONCE; e++) {
            uint i = start + e;
            uint row = (i * LOCAL + me) / SLICE;
            uint d = slice * SLICE + me % SLICE;
            uint from = K_START + at.z * k_batch + at.head * k_head + min(run * RUN + row, sk - 1u) * k_step;
            T v = d < D ? canon(k[from + min(d, D - 1u) * K_UNIT]) : T(0);
            tile[(me % SLICE) * K_PITCH + row / 4u][row % 4u] = v;
            small = small || is_small(v);
        }
    }
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        uint row = (i * LOCAL + me) / SLICE;
        uint d = slice * SLICE + me % SLICE;
        uvec2 place = head_and_query(at.row + row);
        uint from = Q_START + at.z * q_batch + (at.head * shared_by + place.x) * q_head + place.y * q_step;
        T v = d < D ? canon(q[from + min(d, D - 1u) * Q_UNIT]) : T(0);
        q_tile[(me % SLICE) * Q_PITCH + row / 4u][row % 4u] = v;
        small = small || is_small(v);
    }
    if (small) {
        careful[turn] = 1u;
    }
}

void stage_values(Block at, uint key, uint column, uint turn) {
    uint me = gl_LocalInvocationIndex;
    bool small = false;
    for (uint start = 0u; start < K_BROUGHT; start += AT_ONCE) {
        [[unroll]] for (uint e = 0u; e < AT_ONCE; e++) {
            uint i = (start + e) * LOCAL + me;
            uint d = column + i % WIDE;
            uint from = V_START + at.z * v_batch + at.head * v_head + min(key + i / WIDE, sk - 1u) * v_step;
            T x = canon(v[from + min(d, D - 1u) * V_UNIT]);
            x = d < D && key + i / WIDE < sk ? x : T(0);
            tile[i / 4u][i % 4u] = x;
            small = small || is_small(x) || !is_finite(x);
        }
    }
    if (small) {
        careful[turn] = 1u;
    }
}

// After a barrier behind the staging; the other flag is made ready.
bool is_careful(uint turn) {
    if (gl_LocalInvocationIndex == 0u) {
        careful[turn ^ 1u] = 0u;
    }
    return careful[turn] != 0u;
}

uint index_of(Block at, uint row) {
    uvec2 place = head_and_query(row);
    return ((at.z * heads + at.head) * shared_by + place.x) * sq + place.y;
}

// Where the maximum of a row is put, and as the (D + 1)-th of them its sums.
uint slot_of(Block at, uint row) {
    uint index = index_of(at, row);
    return (phase & SPLIT) != 0u ? index * (end_run - begin_run) + at.run : index;
}

// What becomes of the sum of one column of a row; 0 where no key counts, which has the sum of weights 0.
void finish(Block at, uint row, uint d, T sum, T weight) {
    if (at.row + row >= rows || d >= D) {
        return;
    }
    uint from = slot_of(at, at.row + row) * (D + 1u) + d;
    if ((phase & SUMS_IN) != 0u) {
        sum = carried[from] + sum;
    }
    if ((phase & SUMS_OUT) != 0u) {
        carried[from] = sum;
    }
    if ((phase & FINISH) != 0u) {
        uvec2 place = head_and_query(at.row + row);
        uint to = at.z * r_batch + (at.head * shared_by + place.x) * r_head + place.y * r_step + d;
        result[to] = weight == T(0) ? T(0) : canon(p_divide(sum, weight));
    }
}

// A staged value: key e, column c of this invocation's.
#define VALUE(e, c) tile[((e) * WIDE + keys4 * EACH + (c)) / 4u][(keys4 * EACH + (c)) % 4u]

void main() {
    uint me = gl_LocalInvocationIndex;
    uint rows4 = me / 16u;   // four rows, and four keys or one column, whose products this invocation makes
    uint keys4 = me % 16u;
    uint own = me / 4u;      // the row of which it weighs every fourth key
    uint quarter = me % 4u;
    for (uint number = first_block + gl_WorkGroupID.x; number < blocks; number += stride) {
        Block at = block_of(number);
        uvec2 place = head_and_query(at.row + own);
        uint slot_here = slot_of(at, at.row + own);
        if ((phase & SPLIT) != 0u && at.end <= at.begin) {
            if (quarter == 0u && at.row + own < rows) {
                peaks[slot_here] = minus_infinity();
            }
            continue;
        }
        if (me == 0u) {
            careful[0] = careful[1] = small_weights[0] = small_weights[1] = 0u;
        }
        barrier();
        uint turn = 0u;
        T peak = (phase & PEAKS_IN) != 0u ? peaks[slot_here] : minus_infinity();
        T whole = T(0);  // the sum of weights
        T4 totals[PARTS * EACH];
        [[unroll]] for (uint c = 0u; c < PARTS * EACH; c++) {
            totals[c] = T4(0);
        }
        bool single = (phase & (FIND_PEAKS | ADD_UP)) == (FIND_PEAKS | ADD_UP) && at.end <= at.begin + 1u;
        uint first_pass = (phase & FIND_PEAKS) != 0u && !single ? 0u : 1u;
        bool held = at.end <= at.begin + HELD;  // the scores of all runs stay, and are not made again
        uint passes = (phase & ADD_UP) != 0u ? 2u : 1u;
        for (uint pass = first_pass; pass < passes; pass++) {
            for (uint run = at.begin; run < at.end; run++) {
                uint base = held ? (run - at.begin) * RUN * W_PITCH : 0u;
                uint kept = held ? (run - at.begin) * ROWS + own : own;
                T m;
                if (pass == first_pass || !held) {
                    // Scores of four rows with four keys.
                    T4 sums[4] = T4[4](T4(0), T4(0), T4(0), T4(0));
                    T4 dots[4] = T4[4](T4(0), T4(0), T4(0), T4(0));
                    for (uint slice = 0u; slice < SLICES; slice++) {
                        stage_keys(at, run, slice, turn);
                        barrier();
                        if (is_careful(turn)) {
                            for (uint d = 0u; d < SLICE; d++) {
                                T4 p = q_tile[d * Q_PITCH + rows4];
                                T4 w = tile[d * K_PITCH + keys4];
                                sums[0] += mul4(p, w.x);
                                sums[1] += mul4(p, w.y);
                                sums[2] += mul4(p, w.z);
                                sums[3] += mul4(p, w.w);
                            }
                        } else {
                            for (uint start = 0u; start < SLICE; start += 4u) {
                                [[unroll]] for (uint e = 0u; e < 4u; e++) {
                                    T4 p = q_tile[(start + e) * Q_PITCH + rows4];
                                    T4 w = tile[(start + e) * K_PITCH + keys4];
                                    sums[0] += p * T4(w.x);
                                    sums[1] += p * T4(w.y);
                                    sums[2] += p * T4(w.z);
                                    sums[3] += p * T4(w.w);
                                }
                            }
                        }
                        turn ^= 1u;
                        if (slice % 4u == 3u || slice + 1u == SLICES) {
                            [[unroll]] for (uint j = 0u; j < 4u; j++) {
                                dots[j] += sums[j];
                                sums[j] = T4(0);
                            }
                        }
                        barrier();
                    }
                    [[unroll]] for (uint j = 0u; j < 4u; j++) {
                        weights[base + (keys4 * 4u + j) * W_PITCH + rows4] = dots[j];
                    }
                    barrier();
                    // The largest score of the row.
                    m = minus_infinity();
                    for (uint e = quarter; e < RUN; e += 4u) {
                        T s = score(at, place, run * RUN + e, weights[base + e * W_PITCH + own / 4u][own % 4u]);
                        weights[base + e * W_PITCH + own / 4u][own % 4u] = s;
                        m = larger(m, s);
                    }
                    q_tile[own][quarter] = m;
                    barrier();
                    T4 parts = q_tile[own];
                    m = larger(larger(parts.x, parts.y), larger(parts.z, parts.w));
                    if (quarter == 0u) {
                        run_peaks[kept] = m;
                    }
                } else {
                    m = run_peaks[kept];
                }
                peak = pass == 0u || single ? larger(peak, m) : peak;
                uint slot = run & 1u;
                if (pass == 1u) {
                    bool small = false;
                    for (uint e = quarter; e < RUN; e += 4u) {
                        T s = weights[base + e * W_PITCH + own / 4u][own % 4u];
                        T w = s == minus_infinity() ? minus_zero() : p_exp(s - m);
                        weights[base + e * W_PITCH + own / 4u][own % 4u] = w;
                        small = small || is_small(w);
                    }
                    if (small) {
                        small_weights[slot] = 1u;
                    }
                    // exp(m - peak); 0 where no key of the run counts.
                    if (quarter == 0u) {
                        factors[own / 4u][own % 4u] = m == minus_infinity() ? T(0) : p_exp(m - peak);
                    }
                }
                barrier();
                if (pass == 1u) {
                    T run_weight = T(0);
                    for (uint e = 0u; e < RUN; e += 8u) {
                        [[unroll]] for (uint f = 0u; f < 8u; f++) {
                            run_weight += weights[base + (e + f) * W_PITCH + own / 4u][own % 4u];
                        }
                    }
                    whole += mul(factors[own / 4u][own % 4u], canon(run_weight));
                    for (uint part = 0u; part < PARTS; part++) {
                        T4 mean[EACH];
                        [[unroll]] for (uint c = 0u; c < EACH; c++) {
                            mean[c] = T4(0);
                        }
                        for (uint key = 0u; key < RUN; key += DEEP) {
                            stage_values(at, run * RUN + key, part * WIDE, turn);
                            barrier();
                            if (is_careful(turn) || small_weights[slot] != 0u) {
                                for (uint e = 0u; e < DEEP; e++) {
                                    T4 w = weights[base + (key + e) * W_PITCH + rows4];
                                    [[unroll]] for (uint c = 0u; c < EACH; c++) {
                                        mean[c] += selected4(w, VALUE(e, c));
                                    }
                                }
                            } else {
                                for (uint start = 0u; start < DEEP; start += 4u) {
                                    [[unroll]] for (uint e = 0u; e < 4u; e++) {
                                        T4 w = weights[base + (key + start + e) * W_PITCH + rows4];
                                        [[unroll]] for (uint c = 0u; c < EACH; c++) {
                                            mean[c] += w * T4(VALUE(start + e, c));
                                        }
                                    }
                                }
                            }
                            turn ^= 1u;
                            barrier();
                        }
                        [[unroll]] for (uint c = 0u; c < EACH; c++) {
                            T4 sum = product4(factors[rows4], canon4(mean[c]));
                            [[unroll]] for (uint j = 0u; j < PARTS; j++) {
                                totals[j * EACH + c] += j == part ? sum : T4(0);
                            }
                        }
                    }
                    if (me == 0u) {
                        small_weights[slot ^ 1u] = 0u;
                    }
                    barrier();
                }
            }
        }
        if (quarter == 0u && at.row + own < rows) {
            uint from = slot_here * (D + 1u) + D;
            if ((phase & PEAKS_OUT) != 0u) {
                peaks[slot_here] = peak;
            }
            whole = (phase & SUMS_IN) != 0u ? carried[from] + whole : whole;
            if ((phase & SUMS_OUT) != 0u) {
                carried[from] = whole;
            }
        }
        if (quarter == 0u) {
            factors[own / 4u][own % 4u] = peak == minus_infinity() ? T(0) : whole;
        }
        barrier();
        if ((phase & ADD_UP) != 0u) {
            for (uint i = 0u; i < PARTS * EACH * 4u; i++) {
                uint c = i / 4u;
                T4 four = T4(0);
                [[unroll]] for (uint j = 0u; j < PARTS * EACH; j++) {
                    four = j == c ? totals[j] : four;
                }
                uint d = c / EACH * WIDE + keys4 * EACH + c % EACH;
                finish(at, rows4 * 4u + i % 4u, d, four[i % 4u], factors[rows4][i % 4u]);
            }
        }
        barrier();
    }
}
