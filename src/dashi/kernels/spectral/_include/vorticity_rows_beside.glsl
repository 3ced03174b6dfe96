// As vorticity_rows.glsl, with the four fields of a row side by side on the workgroup, as four lines: where rows are few
// this takes less time than one after the other. LINES is a multiple of 4, and PARTS and WINDOWS are 1.
#include "fft_pairs.glsl"

P row_mode(uint base, uint k) {
    return k < kept ? source[base + k] : P(0);
}

void main() {
    uint first = (gl_WorkGroupID.y * across + gl_WorkGroupID.x) * LINES;
    [[unroll]] for (uint u = 0u; u < fft_units(R0); u++) {
        FftPlace at = fft_place(u, R0);
        uint line = first + at.line;
        uint row = line / 4u;
        uint base = ((row / height * 4u + line % 4u) * height + row % height) * kept;
        [[unroll]] for (uint t = 0u; t < R0; t++) {
            P z = P(0);
            uint i = at.j + t * (N / R0);
            if (at.there && (WHOLE == 1u || line < lines)) {
                z = fft_together(row_mode(base, i), row_mode(base, N - i), i).yx;
            }
            value[u * R0 + t] = fft_hold(z);
        }
    }
    fft_transform();
    // u, v, w_x and w_y of an element meet in the line of u; the others are 0 from here on.
    barrier();
    [[unroll]] for (uint u = 0u; u < fft_units(LAST); u++) {
        FftPlace at = fft_place(u, LAST);
        [[unroll]] for (uint t = 0u; t < LAST; t++) {
            P z = fft_held(value[u * LAST + t]);
            if (at.there) {
                fft_whole[at.line * SPAN + at.j + t * (N / LAST)] = P(canon(z.y), canon(z.x));
            }
        }
    }
    barrier();
    [[unroll]] for (uint u = 0u; u < fft_units(LAST); u++) {
        FftPlace at = fft_place(u, LAST);
        [[unroll]] for (uint t = 0u; t < LAST; t++) {
            P z = P(0);
            if (at.there && at.line % 4u == 0u) {
                uint from = at.line * SPAN + at.j + t * (N / LAST);
                P a = fft_whole[from];
                P b = fft_whole[from + SPAN];
                P c = fft_whole[from + 2u * SPAN];
                P d = fft_whole[from + 3u * SPAN];
                P along = P(mul(a.x, c.x), mul(a.y, c.y)) + P(mul(b.x, d.x), mul(b.y, d.y));
                z = P(canon(-along.x), canon(-along.y));
            }
            value[u * LAST + t] = fft_hold(z);
        }
    }
    fft_again();
    fft_transform();
    fft_take_apart();
    [[unroll]] for (uint u = 0u; u < FFT_PAIRS; u++) {
        uint k = fft_pair(u) % FFT_HALF;
        uint line = fft_pair(u) / FFT_HALF;
        if (line < LINES && line % 4u == 0u && first + line < lines) {
            uint row = (first + line) / 4u;
            if (k < kept) {
                result[row * kept + k] = fft_stored(fft_held(fft_low[u]));
            }
            if (k != N - k && N - k < kept) {
                result[row * kept + N - k] = fft_stored(fft_held(fft_high[u]));
            }
        }
    }
}
