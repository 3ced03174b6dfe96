#define ACC T
#define ACC_BYTES (T_IS_F64 == 1 ? 8u : 4u)

ACC none() {
    return T(0);
}

ACC load(uint i) {
    if (first == 0u) {
        return x[i];
    }
    T value = canon(x[i]);
    return mul(value, value);
}

ACC join(ACC a, ACC b) {
    return a + b;
}

void store(uint i, ACC v) {
    result[i] = last != 0u ? p_sqrt(v) : v;
}

#include "reduce64.glsl"
