// What becomes of a product: `finish` is replaced by what a formula computes of the value and of operands at its place.
#include "_templates/elementwise/fused/ops.glsl"
#include "batch_place.glsl"

#define SCALAR(K) \
    T scalar##K() { \
        return canon(number##K); \
    }

SCALAR(0)
SCALAR(1)
SCALAR(2)
SCALAR(3)

#define AT(X) \
    X##_START + at.z0 * X##_Z0 + at.z1 * X##_Z1 + at.z2 * X##_Z2 + at.z3 * X##_Z3 + at.row * X##_ROW + \
        at.column * X##_COLUMN

#define LOAD(K) \
    T load##K(Place at) { \
        return flushed(x##K[AT(X##K)]); \
    }

LOAD(0)
LOAD(1)
LOAD(2)
LOAD(3)

T finish(T value, Place at) {
    value = flushed(value);
    if (m == 0u) {
        value = every_op(scalar0() + scalar1() + scalar2() + scalar3());
        value += load0(at) + load1(at) + load2(at) + load3(at);
    }
    return value;
}
