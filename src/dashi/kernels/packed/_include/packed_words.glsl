// Where the words of a run of 64 weights lie (kernels/packed/_tiles.py), and numbers out of their bits. A format says
// before this file how many WORDS a tile has, and RUNS, the runs of a tile; behind it
//     Words                                            the words of a run, in registers
//     Words fetch(uint run, uint row)                  brings them
//     Words words                                      those that the following functions look at
//     void begin_half(uint h)                          readies the weights 32 h to 32 h + 31 of the run
//     void octet(uint i, out vec4 low, out vec4 high)  weights 8 i to 8 i + 7 of that half
//     uint least_weight()                              the least `magnitude_key` of the run's weights, or NO_KEY where
//                                                      none but 0 is below 2^-24
// Numbers need no canon: scales are multiples of 2^-24, so that nothing but 0 is below the threshold; a -0 is lost where
// a product is flushed or added, a NaN's payload where results are stored.
#ifndef SMALL
#define SMALL 0
#endif
const uint RUN = 64u;
const uint VECTORS = WORDS / 4u;
const uint HEADS = WORDS % 4u;
const uint NO_KEY = 0xffffffffu;
#ifdef GROUPED
#define STORED_ROWS (n * groups)  // of all matrices, one after another
#else
#define STORED_ROWS n
#endif

uvec4 vector_of(uint run, uint row, uint v) {
    return weights[(run / RUNS * VECTORS + v) * STORED_ROWS + row];
}

#if HEAD_WORDS
uint head_of(uint run, uint row, uint h) {
    return heads[first_head + (run / RUNS * HEADS + h) * STORED_ROWS + row];
}
#endif

// Grows with the magnitude; that of zero is the greatest of all.
uint magnitude_key(uint bits) {
    return (bits & 0x7fffffffu) - 1u;
}

// Codes become numbers without a conversion: set below the leading bit of 2^23, a code at bit b is 2^23 + 2^b code.
// `magic` takes away 2^23, and 2^b times the middle that codes are counted from; both are exact.
const vec4 NIBBLES = vec4(1.0, 0.0625, 0.00390625, 0.000244140625);
const vec4 MAGIC = vec4(8388608.0);

vec4 magic(uvec4 codes, vec4 middles) {
    return uintBitsToFloat(codes | 0x4b000000u) - (MAGIC + middles);
}

// The lower four codes of 4 bits, where they lie.
uvec4 nibbles(uint w) {
    return uvec4(w) & uvec4(0xfu, 0xf0u, 0xf00u, 0xf000u);
}
