// Magnitudes as integers with the same order: a NaN is above everything.
#include "keys.glsl"

const uint LANES = 256u;

#if T_IS_F64
const KEY TOP = 0xfff0000000000000ul;  // of infinity
#else
const KEY TOP = 0xff800000u;
#endif

shared KEY largest[LANES];

KEY size_key(T v) {
    return key_of(canon(abs(canon(v))));
}

// The largest of the keys that the invocations of a workgroup bring.
KEY joined(KEY own) {
    uint lane = gl_LocalInvocationIndex;
    largest[lane] = own;
    for (uint others = LANES / 2u; others > 0u; others /= 2u) {
        barrier();
        if (lane < others) {
            largest[lane] = max(largest[lane], largest[lane + others]);
        }
    }
    barrier();
    return largest[0];
}
