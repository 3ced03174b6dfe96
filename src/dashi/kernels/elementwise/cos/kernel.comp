T apply(uint i) {
    return p_cos(x[i]);
}
