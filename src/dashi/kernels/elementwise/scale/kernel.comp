T apply(T x) {
    return mul(canon(a), x);
}
