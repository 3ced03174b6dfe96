// Four sites to a word. What is stored past the end means nothing.
#include "trits.glsl"

uint kept(T value) {
    bool nan = is_nan_bits(value);
    return !nan && order_key(value) > order_key(eps) ? 1u : 0u;
}

#if T_IS_F64
uint keep_four(uint i) {
    uvec4 a = coherence[2u * i];
    uvec4 b = uvec4(0u);
    if (4u * i + 2u < n) {
        b = coherence[2u * i + 1u];
    }
    return kept(packDouble2x32(a.xy)) | kept(packDouble2x32(a.zw)) << 8 | kept(packDouble2x32(b.xy)) << 16 |
           kept(packDouble2x32(b.zw)) << 24;
}
#else
uint keep_four(uint i) {
    vec4 a = uintBitsToFloat(coherence[i]);
    return kept(a.x) | kept(a.y) << 8 | kept(a.z) << 16 | kept(a.w) << 24;
}
#endif

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uint bytes = s[i];
        uint keep = keep_four(i);
        result[i] = trits_of(trits_support(bytes) & keep, trits_minus(bytes) & keep);
    }
}
