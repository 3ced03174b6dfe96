// The kept columns of a tendency forward, and the stage of a time scheme that it completes: the sum of known modes and
// of the tendency itself, each weighted by its table. The generated text before this has `P known_sum(uint i, uint mode)`,
// the sum of the known terms in their order. Columns that are not kept, fewer than those that are, are 0.
#include "fft_complex.glsl"

P stage_term(P z, T table) {
    T weight = canon(table);
    return P(mul(canon(z.x), weight), mul(canon(z.y), weight));
}

P fft_load(uint outer, uint inner, uint j, uint hop) {
    return source[(outer * N + j) * COLUMNS + inner + hop * COLUMNS];
}

void fft_store(uint outer, uint inner, uint j, uint hop, P z) {
    uint mode = j * width + inner + hop * width;
    uint at = outer * (N * width) + mode;
    tendency[at] = z;
    P sums = known_sum(at, mode) + stage_term(z, last_table[mode]);
    result[at] = P(canon(sums.x), canon(sums.y));
    if (COLUMNS + inner < width) {
        tendency[at + COLUMNS] = P(0);
        result[at + COLUMNS] = P(0);
    }
}
