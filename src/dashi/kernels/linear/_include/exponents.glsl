#include "exponent_limits.glsl"

// Biased exponent of a canonical value; zero has none, as its products are zero too.
uint exponent_of(T v) {
#if T_IS_F64
    uint high = unpackDouble2x32(v).y & 0x7fffffffu;
    return high == 0u ? NO_EXPONENT : high >> 20;
#else
    uint size = floatBitsToUint(v) & 0x7fffffffu;
    return size == 0u ? NO_EXPONENT : size >> 23;
#endif
}
