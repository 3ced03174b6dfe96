T apply(uint i) {
    T v = canon(x[i]);
    return mul(v, v);
}
