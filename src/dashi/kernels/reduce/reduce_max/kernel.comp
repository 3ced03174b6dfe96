// Keys are compared, not floats: the order is then total, and the same on every device.
#if T_IS_F64
#define ACC uint64_t
#define ACC_BYTES 8u
#define VALUE order_value_f64
#else
#define ACC uint
#define ACC_BYTES 4u
#define VALUE order_value_f32
#endif

// Below the key of every value, -infinity too.
ACC none() {
    return ACC(0);
}

ACC load(uint i) {
    return order_key(x[i]);
}

ACC join(ACC a, ACC b) {
    return b > a ? b : a;
}

void store(uint i, ACC v) {
    result[i] = VALUE(v);
}

#include "reduce64.glsl"
