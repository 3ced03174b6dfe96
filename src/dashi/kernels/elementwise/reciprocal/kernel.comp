T apply(uint i) {
    return p_reciprocal(x[i]);
}
