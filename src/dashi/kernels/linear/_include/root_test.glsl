// Tells from the factors that no product of theirs is below the threshold of canon(): every factor is 0, or as large as
// the threshold's root. The flush of products, which costs more than they do, can be left out there. So can what
// canon() does to the other factors, where products are added to a sum that begins with +0 and is stored through
// canon(): the sign of a zero is lost in the sum, which is never -0, and a NaN becomes the canonical one in the end.
#include "lanes.glsl"

#if T_IS_F64
const uint LEAST = (539u << 21) - 1u;  // key() of 2^-484
#else
const uint LEAST = (76u << 24) - 1u;  // key() of 2^-51
#endif
const uint NO_KEY = 0xffffffffu;

// Grows with the magnitude; that of zero is the greatest of all.
uint key(T v) {
#if T_IS_F64
    uvec2 bits = unpackDouble2x32(v);
    return ((bits.y << 1) | uint(bits.x != 0u)) - 1u;
#else
    return (floatBitsToUint(v) << 1) - 1u;
#endif
}

uint least_key(V v) {
    return LEAST_LANE(key, v);
}

V cleaned(V v) {
    return EACH_LANE(canon, v);
}
