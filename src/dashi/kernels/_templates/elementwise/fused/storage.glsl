// Numbers as they lie in memory, in words of 32 bits, and as values of T: `from_` makes canonical values, `to_` takes
// such. Only integer operations, exact conversions and one rounded sum, so that no driver has any freedom and no device
// needs types of 8 or 16 bits. The twin is kernels/_storage.py. Needs ops.glsl.
#include "halves.glsl"

uint half_word(uint i) {
    return i >> 1;
}

uint byte_word(uint i) {
    return i >> 2;
}

uint low_word(uint i) {
    return 2u * i;
}

uint high_word(uint i) {
    return 2u * i + 1u;
}

uint half_at(uint word, uint i) {
    return word >> 16u * (i & 1u) & 0xffffu;
}

uint byte_at(uint word, uint i) {
    return word >> 8u * (i & 3u) & 0xffu;
}

// The word of small elements so far, with one more; the first of a word begins it.
uint join_half(uint before, uint bits, uint i) {
    return (i & 1u) == 0u ? bits : before | bits << 16;
}

uint join_byte(uint before, uint bits, uint i) {
    return (i & 3u) == 0u ? bits : before | bits << 8u * (i & 3u);
}

bool ends_word(uint i, uint last) {
    return (i & last) == last || i == n - 1u;
}

uint extended_half(uint h) {
    return (h ^ 0x8000u) - 0x8000u;
}

uint extended_byte(uint b) {
    return (b ^ 0x80u) - 0x80u;
}

#ifdef INTEGER
#include "storage_integer.glsl"
#else
#include "storage_float.glsl"
#endif

T from_bool(uint b) {
    return b != 0u ? T(1) : T(0);
}

T from_u8(uint b) {
    return from_u32(b);
}

T from_i8(uint b) {
    return from_i32(extended_byte(b));
}

T from_u16(uint h) {
    return from_u32(h);
}

T from_i16(uint h) {
    return from_i32(extended_half(h));
}
