// The kept columns of a product and of a flux forward, and the modes of the product plus the divergence of the flux.
// Columns that are not kept, fewer than those that are, are 0.
#include "fft_line.glsl"

FftHeld made[EACH];
FftHeld across_x[EACH];

void main() {
    uint tiles = (COLUMNS + INNER - 1u) / INNER;
    uint group = gl_WorkGroupID.y * across + gl_WorkGroupID.x;
    uint first_inner = group % tiles * INNER;
    uint first_outer = group / tiles * LINES;
    [[dont_unroll]] for (uint product = 0u; product < 3u; product++) {
        [[unroll]] for (uint u = 0u; u < fft_units(R0); u++) {
            FftPlace at = fft_place(u, R0);
            uint outer = first_outer + at.line;
            uint inner = first_inner + at.inner;
            bool there = at.there && (WHOLE == 1u || (outer < lines && inner < COLUMNS));
            [[unroll]] for (uint t = 0u; t < R0; t++) {
                P z = P(0);
                if (there) {
                    z = source[((outer * 3u + product) * N + at.j) * COLUMNS + inner + t * (N / R0) * COLUMNS];
                }
                value[u * R0 + t] = fft_hold(z);
            }
        }
        fft_transform();
        fft_settle();
        [[unroll]] for (uint u = 0u; u < fft_units(LAST); u++) {
            FftPlace at = fft_place(u, LAST);
            T x = canon(wave_x[min(first_inner + at.inner, COLUMNS - 1u)]);
            [[unroll]] for (uint t = 0u; t < LAST; t++) {
                uint e = u * LAST + t;
                P z = fft_held(value[e]);
                if (product == 0u) {
                    made[e] = fft_hold(z);
                } else if (product == 1u) {
                    across_x[e] = fft_hold(P(mul(x, z.y), mul(x, z.x)));
                } else {
                    T y = canon(wave_y[min(at.j + t * (N / LAST), N - 1u)]);
                    P along = fft_held(across_x[e]) + P(mul(y, z.y), mul(y, z.x));
                    P sum = fft_held(made[e]);
                    made[e] = fft_hold(P(canon(sum.x - along.x), canon(sum.y + along.y)));
                }
            }
        }
    }
    [[unroll]] for (uint u = 0u; u < fft_units(LAST); u++) {
        FftPlace at = fft_place(u, LAST);
        uint outer = first_outer + at.line;
        uint inner = first_inner + at.inner;
        if (at.there && (WHOLE == 1u || (outer < lines && inner < COLUMNS))) {
            [[unroll]] for (uint t = 0u; t < LAST; t++) {
                uint place = (outer * N + at.j) * width + inner + t * (N / LAST) * width;
                result[place] = fft_held(made[u * LAST + t]);
                if (COLUMNS + inner < width) {
                    result[place + COLUMNS] = P(0);
                }
            }
        }
    }
}
