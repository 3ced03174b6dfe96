T apply(T a, T b) {
    return b - a;
}
