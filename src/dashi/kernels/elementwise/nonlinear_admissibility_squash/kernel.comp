T apply(T x) {
    return p_tanh(mul(canon(alpha), x));
}
