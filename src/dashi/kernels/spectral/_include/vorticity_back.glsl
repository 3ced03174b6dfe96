// The modes of u, v, w_x and w_y, and if FIELDS is 6 of the strains 2 u_x and u_y + v_x, made of those of vorticity as they
// are loaded, back along the columns that are kept.
#include "fft_complex.glsl"

P fft_load(uint outer, uint inner, uint j, uint hop) {
    uint i = j + hop;
    if (3u * min(i, N - i) >= N) {
        return P(0);
    }
    uint mode = i * width + inner;
    P given = source[outer / FIELDS * (N * width) + mode];
    P z = P(canon(given.x), canon(given.y));
    uint field = outer % FIELDS;
    if (field < 2u || field > 3u) {
        T less = canon(inverse[mode]);
        z = P(mul(z.x, less), mul(z.y, less));
    }
    if (field > 3u) {
        T x = canon(wave_x[inner]);
        T y = canon(wave_y[i]);
        T k = field == 4u ? -(mul(x, y) + mul(x, y)) : mul(x, x) - mul(y, y);
        return P(mul(k, z.x), mul(k, z.y));
    }
    T k = field == 0u || field == 3u ? canon(wave_y[i]) : canon(wave_x[inner]);
    k = field == 1u ? -k : k;
    return P(-mul(k, z.y), mul(k, z.x));
}

void fft_store(uint outer, uint inner, uint j, uint hop, P z) {
    result[(outer * N + j) * COLUMNS + inner + hop * COLUMNS] = z;
}
