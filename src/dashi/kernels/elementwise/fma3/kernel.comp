// Rounds after the product and after the sum: a fused multiply-add is not available with the same bits everywhere.
T apply(uint i) {
    return mul(canon(x[i]), canon(y[i])) + canon(z[i]);
}
