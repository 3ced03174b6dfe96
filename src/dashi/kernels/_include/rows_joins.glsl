// What reductions over rows join two values by, and what they start from: values are canonical, but for a NaN, which may
// be any. After ops.glsl.
#ifdef PLACES
#include "keys.glsl"
#endif

T infinity() {
#if T_IS_F64
    return packDouble2x32(uvec2(0u, 0x7ff00000u));
#else
    return uintBitsToFloat(0x7f800000u);
#endif
}

T start_sum() {
    return T(0);
}

T join_sum(T a, T b) {
    return a + b;
}

T start_prod() {
    return T(1);
}

T join_prod(T a, T b) {
    return mul(a, b);
}

T start_max() {
    return -infinity();
}

T join_max(T a, T b) {
    return op_maximum(a, b);
}

T start_min() {
    return infinity();
}

T join_min(T a, T b) {
    return op_minimum(a, b);
}

// Infinities become 0: so that a shift by the maximum leaves no infinity minus infinity.
T finite_or_zero(T v) {
    return abs(v) == infinity() ? T(0) : v;
}
