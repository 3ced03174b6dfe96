T apply(uint i) {
    return p_exp(x[i]);
}
