T apply(T x) {
    return p_exp(x);
}
