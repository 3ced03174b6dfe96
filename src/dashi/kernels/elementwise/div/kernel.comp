T apply(uint i) {
    return p_divide(x[i], y[i]);
}
