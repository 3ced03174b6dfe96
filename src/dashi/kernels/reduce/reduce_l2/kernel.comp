#define ACC T
#define ACC_BYTES (T_IS_F64 == 1 ? 8u : 4u)

ACC none() {
    return T(0);
}

ACC load(uint i) {
    T value = x[i];
    T size = canon(value);
    return first != 0u ? mul(size, size) : value;
}

ACC join(ACC a, ACC b) {
    return a + b;
}

void store(uint i, ACC v) {
    result[i] = last != 0u ? p_sqrt(v) : v;
}

#include "reduce64.glsl"
