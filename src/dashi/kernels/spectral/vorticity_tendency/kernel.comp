// The kept columns forward; those that are not kept, fewer than these, are 0.
#include "fft_complex.glsl"

P fft_load(uint outer, uint inner, uint j, uint hop) {
    return source[(outer * N + j) * COLUMNS + inner + hop * COLUMNS];
}

void fft_store(uint outer, uint inner, uint j, uint hop, P z) {
    uint at = (outer * N + j) * width + inner + hop * width;
    result[at] = z;
    if (COLUMNS + inner < width) {
        result[at + COLUMNS] = P(0);
    }
}
