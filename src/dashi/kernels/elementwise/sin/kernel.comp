T apply(T x) {
    return p_sin(x);
}
