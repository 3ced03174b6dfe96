// Rows of the six fields back to physical space one after the other, -(u w_x + v w_y) and the eddy fluxes nu_t w_x and
// nu_t w_y there, and their rows forward: nothing of it leaves the workgroup. Pairs are neighbours of a real row.
#include "fft_pairs.glsl"

FftHeld held[EACH];
FftHeld viscosity[EACH];
FftHeld along[EACH];
FftHeld flux_x[EACH];
FftHeld flux_y[EACH];

#define ROW_FIELDS 6u
#include "vorticity_row_load.glsl"

T eddy_viscosity(T normal, T shear) {
    return mul(canon(eddy), p_sqrt(mul(normal, normal) + mul(shear, shear)));
}

// What the field of a turn adds: the strains come first, then u, w_x, v and w_y.
void row_use(uint turn, uint e, P z) {
    P before = fft_held(held[e]);
    if (turn == 1u) {
        viscosity[e] = fft_hold(P(eddy_viscosity(before.x, z.x), eddy_viscosity(before.y, z.y)));
    } else if (turn == 3u || turn == 5u) {
        P slow = fft_held(viscosity[e]);
        P part = P(mul(before.x, z.x), mul(before.y, z.y));
        FftHeld flux = fft_hold(P(canon(mul(slow.x, z.x)), canon(mul(slow.y, z.y))));
        if (turn == 3u) {
            along[e] = fft_hold(part);
            flux_x[e] = flux;
        } else {
            along[e] = fft_hold(fft_held(along[e]) + part);
            flux_y[e] = flux;
        }
    } else {
        held[e] = fft_hold(z);
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
                result[base + k] = fft_stored(fft_held(fft_low[u]));
            }
            if (k != N - k && N - k < kept) {
                result[base + N - k] = fft_stored(fft_held(fft_high[u]));
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
                P z = fft_held(along[e]);
                FftHeld less = fft_hold(P(canon(-z.x), canon(-z.y)));
                value[e] = turn == 6u ? less : turn == 7u ? flux_x[e] : flux_y[e];
            }
            fft_again();
        }
        fft_transform();
        if (turn < 6u) {
            [[unroll]] for (uint e = 0u; e < count; e++) {
                P z = fft_held(value[e]);
                row_use(turn, e, P(canon(z.y), canon(z.x)));
            }
        } else {
            row_store(first, turn - 6u);
        }
    }
}
