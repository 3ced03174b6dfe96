T apply(T x, T y) {
    return mul(canon(a), x) + y;
}
