T apply(T x, T y) {
    return x + y;
}
