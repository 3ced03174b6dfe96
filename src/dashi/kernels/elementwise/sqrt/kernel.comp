T apply(uint i) {
    return p_sqrt(x[i]);
}
