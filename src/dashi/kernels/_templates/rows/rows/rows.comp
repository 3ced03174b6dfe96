// Every kernel over rows that is made of formulas replaces the functions here, whose bodies only keep what they may call
// in the module (the compiler drops what nobody calls). See rows.glsl.
#include "_templates/elementwise/fused/ops.glsl"
#include "_templates/elementwise/fused/scalars.glsl"
#include "rows_joins.glsl"
#include "rows_operands.glsl"

// The number of elements of a row, which formulas see behind the eight scalars of a call.
T scalar8() {
    return canon(count);
}

T head(Place at) {
    if (n == 0u) {
        return every_op(every_scalar()) + scalar8();
    }
    return load0(at) + load1(at) + load2(at) + load3(at) + load4(at) + load5(at) + load6(at) + load7(at);
}

T first(T value) {
    return value;
}

#ifndef PLACES
T start0() {
    return start_sum() + start_prod() + start_max() + start_min();
}

T join0(T a, T b) {
    return join_sum(join_prod(a, b), join_max(a, join_min(a, b)));
}

T settle0(T total) {
    return finite_or_zero(total);
}

T start1() {
    return start_sum();
}

T join1(T a, T b) {
    return join_sum(a, b);
}

T settle1(T total, T r0) {
    return total;
}

void tail(Place at, T value, T r0, T r1) {
    T result = canon(value + r0 + r1);
    store0(at, result);
    store1(at, result);
    store2(at, result);
    store3(at, result);
}
#endif

T moved(T value, T r0) {
    return value - r0;
}

T second(T value) {
    return value;
}

#include "rows.glsl"
