T apply(uint i) {
    return abs(canon(b[i]) - canon(a[i]));
}
