// The words of the first states: tagged 1 in the set of even steps, empty in that of odd ones.
void main() {
    for (uint i = gl_GlobalInvocationID.x; i < count; i += stride) {
        T value = canon(source[i]);
#if T_IS_F64
        uvec2 bits = unpackDouble2x32(value);
        words[2u * i] = (uint64_t(1) << 32) | uint64_t(bits.x);
        words[2u * i + 1u] = (uint64_t(1) << 32) | uint64_t(bits.y);
        words[2u * count + 2u * i] = uint64_t(0);
        words[2u * count + 2u * i + 1u] = uint64_t(0);
#else
        words[i] = (uint64_t(1) << 32) | uint64_t(floatBitsToUint(value));
        words[count + i] = uint64_t(0);
#endif
    }
    if (gl_GlobalInvocationID.x < 4u) {
        flag[gl_GlobalInvocationID.x] = 0u;
    }
}
