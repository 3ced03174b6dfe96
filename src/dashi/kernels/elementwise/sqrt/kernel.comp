T apply(T x) {
    return p_sqrt(x);
}
