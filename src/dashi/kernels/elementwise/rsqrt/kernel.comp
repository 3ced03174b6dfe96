T apply(uint i) {
    return p_rsqrt(x[i]);
}
