// What values of one place are joined by, and what they are joined to first. After portable.glsl; values are canonical.
#if defined(JOIN_MUL)
#define START T(1.0)
T JOIN(T a, T b) {
    return mul(a, b);
}
#elif defined(JOIN_MAX) || defined(JOIN_MIN)
#if T_IS_F64
#define INFINITY packDouble2x32(uvec2(0u, F64_INF_HIGH))
#else
#define INFINITY uintBitsToFloat(F32_INF)
#endif
#ifdef JOIN_MAX
#define START (-INFINITY)
#else
#define START INFINITY
#endif
T JOIN(T a, T b) {
#ifdef JOIN_MAX
    T chosen = a < b ? b : a;
#else
    T chosen = b < a ? b : a;
#endif
    return is_nan_bits(a) ? a : (is_nan_bits(b) ? b : chosen);
}
#else
#define START T(0.0)
#define JOIN(a, b) ((a) + (b))
#endif
#if defined(JOIN_MUL) || defined(JOIN_MAX) || defined(JOIN_MIN)
#define JOIN_INTO(total, value) total = JOIN(total, value)
#else
#define JOIN_INTO(total, value) total += value
#endif
