// What sums give that have no value: the canonical NaN.
T not_a_number() {
#if T_IS_F64
    return packDouble2x32(uvec2(0u, F64_NAN_HIGH));
#else
    return uintBitsToFloat(F32_NAN);
#endif
}
