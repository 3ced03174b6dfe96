T apply(uint i) {
    return -canon(x[i]);
}
