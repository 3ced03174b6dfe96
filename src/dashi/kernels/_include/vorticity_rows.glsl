// Rows of the four fields back to physical space one after the other, -(u w_x + v w_y) there, and its rows forward:
// nothing of it leaves the workgroup. Pairs are neighbours (2 i, 2 i + 1) of a real row.
#include "fft_pairs.glsl"

P held[EACH];
P along[EACH];

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
                value[e] = P(canon(-along[e].x), canon(-along[e].y));
            }
            fft_again();
        }
        fft_transform();
        if (turn < 4u) {
            [[unroll]] for (uint e = 0u; e < count; e++) {
                P z = P(canon(value[e].y), canon(value[e].x));
                if (turn % 2u == 0u) {
                    held[e] = z;
                } else {
                    P part = P(mul(held[e].x, z.x), mul(held[e].y, z.y));
                    along[e] = turn == 1u ? part : along[e] + part;
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
                result[(first + line) * kept + k] = P(fft_stored(fft_low[u].x), fft_stored(fft_low[u].y));
            }
            if (k != N - k && N - k < kept) {
                result[(first + line) * kept + N - k] = P(fft_stored(fft_high[u].x), fft_stored(fft_high[u].y));
            }
        }
    }
}
