T apply(uint i) {
    return mul(canon(a), canon(x[i]));
}
