T apply(T x) {
    return p_softplus(x);
}
