T apply(uint i) {
    return canon(b[i]) - canon(a[i]);
}
