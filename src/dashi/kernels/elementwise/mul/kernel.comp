T apply(uint i) {
    return mul(canon(x[i]), canon(y[i]));
}
