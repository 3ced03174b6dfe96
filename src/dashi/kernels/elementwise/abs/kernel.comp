T apply(T x) {
    return abs(x);
}
