T apply(T x) {
    return p_log(x);
}
