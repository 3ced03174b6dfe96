// A row of state in shared memory times columns of A that invocations hold, in the canonical order tree64; the parts
// that all kernels of many steps share. The flush of products is left out where the smallest exponents of the state and
// of A allow it.
#include "staged_runs.glsl"
#include "exponents.glsl"

const uint RUN_VECTORS = RUN / P_LANES;
const uint RUN_PITCH = RUN_VECTORS + 1u;  // one more, so that neighbouring runs do not meet in one bank

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
