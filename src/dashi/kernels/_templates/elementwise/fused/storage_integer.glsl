// Integers wrap round, whatever is wider: they keep their lower bits.
T from_u32(uint w) {
    return T(w);
}

#if INTEGER_BITS == 64
// In words: lavapipe 22.3.6 takes an int that it widened to 64 bits for a number without a sign when it compares it.
T from_i32(uint w) {
    return T(packUint2x32(uvec2(w, (w & 0x80000000u) != 0u ? 0xffffffffu : 0u)));
}

T from_u64(uint low, uint high) {
    return T(packUint2x32(uvec2(low, high)));
}

uvec2 words_of(T v) {
    return unpackUint2x32(uint64_t(v));
}
#else
T from_i32(uint w) {
    return T(w);
}

T from_u64(uint low, uint high) {
    return T(low);
}

uvec2 words_of(T v) {
    return uvec2(uint(v), v < T(0) ? 0xffffffffu : 0u);
}
#endif

T from_i64(uint low, uint high) {
    return from_u64(low, high);
}

uvec2 to_u64(T v) {
    return words_of(v);
}

uvec2 to_i64(T v) {
    return words_of(v);
}

uint to_u32(T v) {
    return words_of(v).x;
}

uint to_i32(T v) {
    return words_of(v).x;
}

uint to_u16(T v) {
    return words_of(v).x & 0xffffu;
}

uint to_i16(T v) {
    return words_of(v).x & 0xffffu;
}

uint to_u8(T v) {
    return words_of(v).x & 0xffu;
}

uint to_i8(T v) {
    return words_of(v).x & 0xffu;
}

uint to_bool(T v) {
    return v != T(0) ? 1u : 0u;
}
