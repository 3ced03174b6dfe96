T apply(T x) {
    return p_rsqrt(x);
}
