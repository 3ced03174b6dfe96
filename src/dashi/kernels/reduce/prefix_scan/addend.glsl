#define ACC T
#define ACC_BYTES (T_IS_F64 == 1 ? 8u : 4u)

ACC none() {
    return T(0);
}

// Totals go on as they are: only what comes in and what goes out is made canonical.
ACC load(uint i) {
    T value = x[i];
    return first != 0u ? canon(value) : value;
}

ACC join(ACC a, ACC b) {
    return a + b;
}
