// The modes of u, v, w_x and w_y, made of those of vorticity as they are loaded, back along the columns that are kept.
#include "fft_complex.glsl"

P fft_load(uint outer, uint inner, uint j, uint hop) {
    uint i = j + hop;
    if (3u * min(i, N - i) >= N) {
        return P(0);
    }
    uint mode = i * width + inner;
    P given = source[outer / 4u * (N * width) + mode];
    P z = P(canon(given.x), canon(given.y));
    uint field = outer % 4u;
    if (field < 2u) {
        T less = canon(inverse[mode]);
        z = P(mul(z.x, less), mul(z.y, less));
    }
    T k = field == 0u || field == 3u ? canon(wave_y[i]) : canon(wave_x[inner]);
    k = field == 1u ? -k : k;
    return P(-mul(k, z.y), mul(k, z.x));
}

void fft_store(uint outer, uint inner, uint j, uint hop, P z) {
    result[(outer * N + j) * COLUMNS + inner + hop * COLUMNS] = z;
}
