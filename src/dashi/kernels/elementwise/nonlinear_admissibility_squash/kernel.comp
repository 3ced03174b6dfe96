T apply(uint i) {
    return p_tanh(mul(canon(alpha), canon(x[i])));
}
