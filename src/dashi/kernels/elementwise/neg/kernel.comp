T apply(T x) {
    return -x;
}
