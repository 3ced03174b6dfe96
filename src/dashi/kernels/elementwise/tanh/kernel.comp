T apply(T x) {
    return p_tanh(x);
}
