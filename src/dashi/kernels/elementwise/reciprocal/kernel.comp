T apply(T x) {
    return p_reciprocal(x);
}
