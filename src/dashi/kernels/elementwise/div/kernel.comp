T apply(T x, T y) {
    return p_divide(x, y);
}
