T apply(uint i) {
    return abs(canon(x[i]));
}
