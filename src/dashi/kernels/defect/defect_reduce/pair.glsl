// The largest defect, as an integer key (a NaN has the highest), and the sum of them.
#if T_IS_F64
#define KEY uint64_t
#define ORDER_VALUE order_value_f64
#else
#define KEY uint
#define ORDER_VALUE order_value_f32
#endif

struct Pair {
    KEY most;
    T total;
};

#define ACC Pair
#define ACC_BYTES (T_IS_F64 == 1 ? 16u : 8u)

ACC none() {
    return Pair(order_key(T(0)), T(0));
}

ACC join(ACC a, ACC b) {
    return Pair(b.most > a.most ? b.most : a.most, a.total + b.total);
}

// No addend is negative, so that canon changes no sum except a NaN.
void store(uint i, ACC v) {
    result[2u * i] = ORDER_VALUE(v.most);
    result[2u * i + 1u] = canon(v.total);
}
