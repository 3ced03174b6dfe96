// The words of the tile that an invocation reads (kernels/packed/_tiles.py has their order), and codes out of them.
// Dequantised values need no canon: scales are multiples of 2^-24, so that nothing but 0 is below the threshold, mul
// makes -0 +0, and a NaN's payload is lost where results are stored.
uint first_word;  // of the tile, in weights
uint quarter;     // which 64 weights of a K block

uint word(uint i) {
    return weights[first_word + i * n];
}

uvec4 nibbles(uint w) {
    return uvec4(w, w >> 4, w >> 8, w >> 12) & 15u;
}

uvec4 bits(uint w) {
    return uvec4(w, w >> 1, w >> 2, w >> 3) & 1u;
}

vec4 scaled(float step, vec4 codes) {
    return vec4(mul(step, codes.x), mul(step, codes.y), mul(step, codes.z), mul(step, codes.w));
}
