// Rows of the four fields back to physical space one after the other, -(u w_x + v w_y) there, and its rows forward:
// nothing of it leaves the workgroup. Pairs are neighbours (2 i, 2 i + 1) of a real row.
#include "fft_pairs.glsl"

FftHeld held[EACH];
FftHeld along[EACH];

#define ROW_FIELDS 4u
#include "vorticity_row_load.glsl"

void main() {
    uint first = (gl_WorkGroupID.y * across + gl_WorkGroupID.x) * LINES;
    const uint count = fft_units(LAST) * LAST;
    // u, w_x, v and w_y back, then the product forward: one loop, so that the transform is compiled once.
    [[dont_unroll]] for (uint turn = 0u; turn < 5u; turn++) {
        if (turn < 4u) {
            row_load(first, turn / 2u + turn % 2u * 2u);
        } else {
            [[unroll]] for (uint e = 0u; e < count; e++) {
                P z = fft_held(along[e]);
                value[e] = fft_hold(P(canon(-z.x), canon(-z.y)));
            }
            fft_again();
        }
        fft_transform();
        if (turn < 4u) {
            [[unroll]] for (uint e = 0u; e < count; e++) {
                P z = fft_held(value[e]);
                z = P(canon(z.y), canon(z.x));
                if (turn % 2u == 0u) {
                    held[e] = fft_hold(z);
                } else {
                    P before = fft_held(held[e]);
                    P part = P(mul(before.x, z.x), mul(before.y, z.y));
                    along[e] = fft_hold(turn == 1u ? part : fft_held(along[e]) + part);
                }
            }
        }
    }
    fft_take_apart();
    [[unroll]] for (uint u = 0u; u < FFT_PAIRS; u++) {
        uint k = fft_pair(u) % FFT_HALF;
        uint line = fft_pair(u) / FFT_HALF;
        if (line < LINES && first + line < lines) {
            if (k < kept) {
                result[(first + line) * kept + k] = fft_stored(fft_held(fft_low[u]));
            }
            if (k != N - k && N - k < kept) {
                result[(first + line) * kept + N - k] = fft_stored(fft_held(fft_high[u]));
            }
        }
    }
}
