T apply(uint i) {
    return p_tanh(x[i]);
}
