// x / sqrt(mean of squares + eps) gamma. See rows.glsl.
#include "rows_plain.glsl"
#include "norm_sums.glsl"

T head(Place at) {
    return load0(at);
}

T first(T value) {
    return mul(value, value);
}

T settle0(T total) {
    return scale_of(total);
}

T moved(T value, T r0) {
    return value;
}

T second(T value) {
    return value;
}

T settle1(T total, T r0) {
    return total;
}

void tail(Place at, T value, T r0, T r1) {
    store0(at, canon(mul(mul(value, r0), canon(load1(at)))));
}

#include "rows.glsl"
