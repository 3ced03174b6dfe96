// Numbers of 16 bits, two to a word, to and from fp32, by their bits, so that no driver can round, flush or keep a
// payload otherwise. Without branches: some compilers take minutes over many of them. The twin is kernels/halves.py.
// Needs portable.glsl.
#ifndef HALVES_GLSL
#define HALVES_GLSL

// IEEE half to fp32, exactly. Subnormals are numbers like others; -0 becomes +0, every NaN the one NaN.
float f16_value(uint h) {
    uint size = h & 0x7fffu;
    uint bits = (size << 13) + 0x38000000u;
    // A subnormal is what 2^-14 with its fraction is more than 2^-14; the difference is exact.
    float fraction = uintBitsToFloat((size << 13) + 0x38800000u) - 6.103515625e-5;
    bits = mix(bits, floatBitsToUint(fraction), size < 0x0400u);
    bits = mix(bits, 0x7f800000u, size == 0x7c00u);
    bits = mix(bits, F32_NAN, size > 0x7c00u);
    bool bare = size - 1u >= 0x7c00u;  // 0 and NaN have no sign
    return uintBitsToFloat(bits | mix((h & 0x8000u) << 16, 0u, bare));
}

// A canonical number to the nearest half, ties to even. Too large ones become infinite, too small ones +0.
uint f16_bits(float v) {
    uint bits = floatBitsToUint(v);
    uint size = bits & 0x7fffffffu;
    uint scaled = size - 0x38000000u;
    uint made = (scaled + 0x0fffu + (scaled >> 13 & 1u)) >> 13;
    // Subnormals are multiples of 2^-24; what is shifted by 25 is below half of that.
    uint whole = (size & 0x007fffffu) | 0x00800000u;
    uint down = uint(clamp(126 - int(size >> 23), 14, 25));
    uint multiple = (whole + (1u << (down - 1u)) - 1u + (whole >> down & 1u)) >> down;
    made = mix(made, multiple, size < 0x38800000u);
    made = mix(made, 0x7c00u, size >= 0x47800000u);
    made |= mix(bits >> 16 & 0x8000u, 0u, made == 0u);
    return mix(made, 0x7e00u, size > 0x7f800000u);
}

// The upper half of an fp32 (bf16). Its range is that of fp32; what is not canonical there becomes +0 or the one NaN.
float bf16_value(uint h) {
    return canon(uintBitsToFloat(h << 16));
}

// A canonical number to the nearest, ties to even.
uint bf16_bits(float v) {
    uint bits = floatBitsToUint(v);
    uint rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return mix(rounded, 0x7fc0u, (bits & 0x7fffffffu) > 0x7f800000u);
}

#endif
