T apply(uint i) {
    return p_softplus(x[i]);
}
