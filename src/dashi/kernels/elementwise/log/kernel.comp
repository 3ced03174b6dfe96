T apply(uint i) {
    return p_log(x[i]);
}
