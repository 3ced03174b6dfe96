// The kept columns of a tendency forward, and the stage of a time scheme that it completes: the sum of known modes and
// of the tendency itself, each weighted by its table. The generated text before this has `P known_sum(uint i, uint mode)`,
// the sum of the known terms in their order. If FORCED is 1 a steady force is added to the tendency first. If INCREMENT
// is 1 the sum is what x0 changes by. Columns that are not kept, fewer than those that are, are 0.
//
// Everything is loaded before the transform: a load after a store might see what was stored, as far as a compiler knows,
// and would wait for it.
#include "fft_line.glsl"
#include "increments.glsl"

FftHeld state[EACH];
FftHeld known[EACH];
FftHeld steady[EACH];
T weight[EACH];
T part[EACH];

P stage_term(P z, T table) {
    T factor = canon(table);
    return P(mul(canon(z.x), factor), mul(canon(z.y), factor));
}

bool is_there(FftPlace at, uint outer, uint inner) {
    return at.there && (WHOLE == 1u || (outer < lines && inner < COLUMNS));
}

void main() {
    uint tiles = (COLUMNS + INNER - 1u) / INNER;
    uint group = gl_WorkGroupID.y * across + gl_WorkGroupID.x;
    uint first_inner = group % tiles * INNER;
    uint first_outer = group / tiles * LINES;
    [[unroll]] for (uint u = 0u; u < fft_units(R0); u++) {
        FftPlace at = fft_place(u, R0);
        uint outer = first_outer + at.line;
        uint inner = first_inner + at.inner;
        bool there = is_there(at, outer, inner);
        [[unroll]] for (uint t = 0u; t < R0; t++) {
            P z = P(0);
            if (there) {
                z = source[(outer * N + at.j) * COLUMNS + inner + t * (N / R0) * COLUMNS];
            }
            value[u * R0 + t] = fft_hold(z);
        }
    }
    [[unroll]] for (uint u = 0u; u < fft_units(LAST); u++) {
        FftPlace at = fft_place(u, LAST);
        uint outer = first_outer + at.line;
        uint inner = first_inner + at.inner;
        if (is_there(at, outer, inner)) {
            if (INCREMENT == 1u) {
                part[u] = last_digits(canon(x0[outer * (N * width)].y));
            }
            [[unroll]] for (uint t = 0u; t < LAST; t++) {
                uint mode = at.j * width + inner + t * (N / LAST) * width;
                if (INCREMENT == 1u) {
                    state[u * LAST + t] = fft_hold(x0[outer * (N * width) + mode]);
                }
                known[u * LAST + t] = fft_hold(known_sum(outer * (N * width) + mode, mode));
                weight[u * LAST + t] = last_table[mode];
                if (FORCED == 1u) {
                    steady[u * LAST + t] = fft_hold(force[mode]);
                }
            }
        }
    }
    fft_transform();
    fft_settle();
    [[unroll]] for (uint u = 0u; u < fft_units(LAST); u++) {
        FftPlace at = fft_place(u, LAST);
        uint outer = first_outer + at.line;
        uint inner = first_inner + at.inner;
        if (is_there(at, outer, inner)) {
            [[unroll]] for (uint t = 0u; t < LAST; t++) {
                P z = fft_held(value[u * LAST + t]);
                if (FORCED == 1u) {
                    P f = fft_held(steady[u * LAST + t]);
                    z = P(canon(z.x + canon(f.x)), canon(z.y + canon(f.y)));
                }
                uint place = outer * (N * width) + at.j * width + inner + t * (N / LAST) * width;
                P sums = fft_held(known[u * LAST + t]) + stage_term(z, weight[u * LAST + t]);
                if (INCREMENT == 1u) {
                    P x = fft_held(state[u * LAST + t]);
                    x = P(canon(x.x), canon(x.y));
                    bool clock = at.j + inner + t * (N / LAST) == 0u;
                    sums = P(incremented(x.x, sums.x, part[u]), clock ? ticked(x.y) : incremented(x.y, sums.y, part[u]));
                }
                tendency[place] = z;
                result[place] = P(canon(sums.x), canon(sums.y));
                if (COLUMNS + inner < width) {
                    tendency[place + COLUMNS] = P(0);
                    result[place + COLUMNS] = P(0);
                }
            }
        }
    }
}
