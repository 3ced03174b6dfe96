T apply(T x) {
    return mul(x, x);
}
