T apply(T x, T y) {
    return mul(x, y);
}
