// Rounds after the product and after the sum: a fused multiply-add is not available with the same bits everywhere.
T apply(T x, T y, T z) {
    return mul(x, y) + z;
}
