// Rows of the six fields back to physical space one after the other, -(u w_x + v w_y) and the eddy fluxes nu_t w_x and
// nu_t w_y there, and their rows forward: nothing of it leaves the workgroup. Pairs are neighbours of a real row.
#include "fft_pairs.glsl"

P held[EACH];
P viscosity[EACH];
P along[EACH];
P flux_x[EACH];
P flux_y[EACH];

#define ROW_FIELDS 6u
#include "vorticity_row_load.glsl"

T eddy_viscosity(T normal, T shear) {
    return mul(canon(eddy), p_sqrt(mul(normal, normal) + mul(shear, shear)));
}

// What the field of a turn adds: the strains come first, then u, w_x, v and w_y.
void row_use(uint turn, uint e, P z) {
    if (turn == 1u) {
        viscosity[e] = P(eddy_viscosity(held[e].x, z.x), eddy_viscosity(held[e].y, z.y));
    } else if (turn == 3u) {
        along[e] = P(mul(held[e].x, z.x), mul(held[e].y, z.y));
        flux_x[e] = P(canon(mul(viscosity[e].x, z.x)), canon(mul(viscosity[e].y, z.y)));
    } else if (turn == 5u) {
        along[e] += P(mul(held[e].x, z.x), mul(held[e].y, z.y));
        flux_y[e] = P(canon(mul(viscosity[e].x, z.x)), canon(mul(viscosity[e].y, z.y)));
    } else {
        held[e] = z;
    }
}

void row_store(uint first, uint product) {
    fft_take_apart();
    [[unroll]] for (uint u = 0u; u < FFT_PAIRS; u++) {
        uint k = fft_pair(u) % FFT_HALF;
        uint line = first + fft_pair(u) / FFT_HALF;
        uint base = ((line / height * 3u + product) * height + line % height) * kept;
        if (line < first + LINES && line < lines) {
            if (k < kept) {
                result[base + k] = P(fft_stored(fft_low[u].x), fft_stored(fft_low[u].y));
            }
            if (k != N - k && N - k < kept) {
                result[base + N - k] = P(fft_stored(fft_high[u].x), fft_stored(fft_high[u].y));
            }
        }
    }
}

void main() {
    uint first = (gl_WorkGroupID.y * across + gl_WorkGroupID.x) * LINES;
    const uint count = fft_units(LAST) * LAST;
    // One loop, so that the transform is compiled once.
    [[dont_unroll]] for (uint turn = 0u; turn < 9u; turn++) {
        if (turn < 6u) {
            row_load(first, turn < 2u ? 4u + turn : (turn - 2u) / 2u + turn % 2u * 2u);
        } else {
            [[unroll]] for (uint e = 0u; e < count; e++) {
                P less = P(canon(-along[e].x), canon(-along[e].y));
                value[e] = turn == 6u ? less : turn == 7u ? flux_x[e] : flux_y[e];
            }
            fft_again();
        }
        fft_transform();
        if (turn < 6u) {
            [[unroll]] for (uint e = 0u; e < count; e++) {
                row_use(turn, e, P(canon(value[e].y), canon(value[e].x)));
            }
        } else {
            row_store(first, turn - 6u);
        }
    }
}
