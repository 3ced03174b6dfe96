T apply(uint i) {
    return p_sin(x[i]);
}
