// The smallest and largest element, for stream64.glsl, as integers made of the bits as they are: so little work per
// element does not hold up memory. NaNs lie beyond the infinities, on both sides, and are found at the end; so are
// values that count as zero. PICK is least or most.
#include "keys.glsl"

struct Range {
    KEY least;
    KEY most;
};

#define ACC Range

ACC none() {
    return Range(~KEY(0), KEY(0));
}

KEYS raw_keys(uvec4 words) {
#if T_IS_F64
    KEYS bits = KEYS(packUint2x32(words.xy), packUint2x32(words.zw));
    return bits ^ (KEYS(i64vec2(bits) >> 63) | 0x8000000000000000ul);
#else
    return words ^ (uvec4(ivec4(words) >> 31) | 0x80000000u);
#endif
}

ACC join(ACC a, ACC b) {
    return Range(min(a.least, b.least), max(a.most, b.most));
}

ACC join_words(ACC total, uvec4 words, uint i) {
    KEYS keys = raw_keys(words);
    ACC both = Range(min(keys.x, keys.y), max(keys.x, keys.y));
#if T_IS_F64 == 0
    both = join(both, Range(min(keys.z, keys.w), max(keys.z, keys.w)));
#endif
    return join(total, both);
}

ACC join_end(ACC total, uvec4 words, uint i) {
    KEYS keys = raw_keys(words);
    for (uint c = 0u; c < ELEMS && i + c < n; c++) {
        total = join(total, Range(keys[c], keys[c]));
    }
    return total;
}

void store(uint i, ACC v) {
    KEY key = is_nan_bits(VALUE_OF(v.most)) ? v.most : is_nan_bits(VALUE_OF(v.least)) ? v.least : v.PICK;
    result[i] = canon(VALUE_OF(key));
}
