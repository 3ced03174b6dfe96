// Trits as bytes, four to a word: bit 0 of a byte is the support, bit 1 the sign (-1 is 0xff, in two's complement).
#ifndef TRITS_GLSL
#define TRITS_GLSL

const uint ONES = 0x01010101u;

uint trits_support(uint word) {
    return word & ONES;
}

uint trits_minus(uint word) {
    return (word >> 1) & word & ONES;
}

// Bytes 0, 1 or 0xff from marks in bit 0 of every byte; minus lies within support.
uint trits_of(uint support, uint minus) {
    return support + minus * 254u;
}

// The bytes of four sites that lie below n.
uint below(uint first, uint n) {
    uint left = first < n ? n - first : 0u;
    return left >= 4u ? 0xffffffffu : (1u << (8u * left)) - 1u;
}

uvec4 below16(uint first, uint n) {
    return uvec4(below(first, n), below(first + 4u, n), below(first + 8u, n), below(first + 12u, n));
}

#endif
