// exp(x - largest) over the sum of these. See rows.glsl.
#include "rows_plain.glsl"

T head(Place at) {
    return load0(at);
}

T first(T value) {
    return value;
}

T start0() {
    return start_max();
}

T join0(T a, T b) {
    return join_max(a, b);
}

T settle0(T total) {
    return total;
}

T moved(T value, T r0) {
    return p_exp(value - r0);
}

T second(T value) {
    return value;
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
    store0(at, canon(p_divide(value, r1)));
}

#include "rows.glsl"
