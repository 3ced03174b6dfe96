// What becomes of a product: `finish` is replaced by what a formula computes of the value and of operands at its place.
#include "_templates/elementwise/fused/ops.glsl"
#include "batch_place.glsl"

T scalar0() {
    return canon(number0);
}

T scalar1() {
    return canon(number1);
}

T scalar2() {
    return canon(number2);
}

T scalar3() {
    return canon(number3);
}

#define AT(X) \
    X##_START + at.z0 * X##_Z0 + at.z1 * X##_Z1 + at.z2 * X##_Z2 + at.z3 * X##_Z3 + at.row * X##_ROW + \
        at.column * X##_COLUMN

T load0(Place at) {
    return flushed(x0[AT(X0)]);
}

T load1(Place at) {
    return flushed(x1[AT(X1)]);
}

T load2(Place at) {
    return flushed(x2[AT(X2)]);
}

T load3(Place at) {
    return flushed(x3[AT(X3)]);
}

T finish(T value, Place at) {
    value = flushed(value);
    if (m == 0u) {
        value = every_op(scalar0() + scalar1() + scalar2() + scalar3());
        value += load0(at) + load1(at) + load2(at) + load3(at);
    }
    return value;
}
