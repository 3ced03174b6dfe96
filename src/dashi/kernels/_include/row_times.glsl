// A row of state in shared memory times columns of A that invocations hold, in the canonical order tree64; the parts
// that all kernels of many steps share. Values of the state are staged in vectors of 16 bytes: a run of 64 is RUN_PITCH
// of them, one more than it needs, so that neighbouring runs do not meet in one bank.
//
// The flush of small products costs as much as the products. It can change nothing where the smallest exponents of the
// state and of A add up to the threshold's, so it is left out there.

#if T_IS_F64
#define P dvec2
const uint P_LANES = 2u;
const uint LEAST_SUM = 1077u;  // biased exponents whose product is 2^-969 or more
#else
#define P vec4
const uint P_LANES = 4u;
const uint LEAST_SUM = 152u;  // biased exponents whose product is 2^-102 or more
#endif
const uint RUN = 64u;
const uint RUN_VECTORS = RUN / P_LANES;
const uint RUN_PITCH = RUN_VECTORS + 1u;
const uint NO_EXPONENT = 0x7fffu;

// Biased exponent of a canonical value; zero has none.
uint exponent_of(T v) {
#if T_IS_F64
    uint high = unpackDouble2x32(v).y & 0x7fffffffu;
    return high == 0u ? NO_EXPONENT : high >> 20;
#else
    uint size = floatBitsToUint(v) & 0x7fffffffu;
    return size == 0u ? NO_EXPONENT : size >> 23;
#endif
}

#if T_IS_F64
#define ADD_PRODUCTS(total, v, a, at, MUL) \
    total += MUL(v.x, a[at]); \
    total += MUL(v.y, a[at + 1u]);
#else
#define ADD_PRODUCTS(total, v, a, at, MUL) \
    total += MUL(v.x, a[at]); \
    total += MUL(v.y, a[at + 1u]); \
    total += MUL(v.z, a[at + 2u]); \
    total += MUL(v.w, a[at + 3u]);
#endif
#define PLAIN_MUL(x, y) ((x) * (y))
