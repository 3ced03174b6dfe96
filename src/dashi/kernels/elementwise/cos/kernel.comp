T apply(T x) {
    return p_cos(x);
}
