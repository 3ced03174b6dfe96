// The best element so far: the order key of its value, and its place. Included by both shaders of the kernel.
#if T_IS_F64
#define KEY uint64_t
#define ACC_BYTES 16u
#define VALUE order_value_f64
#else
#define KEY uint
#define ACC_BYTES 8u
#define VALUE order_value_f32
#endif
#define ACC Best

struct Best {
    KEY key;
    uint place;
};

// Below the key of every value, -infinity too.
ACC none() {
    return Best(KEY(0), 0u);
}

// Elements are joined in index order, so the first of equals stays.
ACC join(ACC a, ACC b) {
    if (b.key > a.key) {
        return b;
    }
    return a;
}

void store(uint i, ACC v) {
    values[i] = VALUE(v.key);
    places[i] = v.place;
}
