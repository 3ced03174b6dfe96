// What only integers have. Divisions are of magnitudes, since signs are where languages differ; by 0 they give 0.
#if INTEGER_BITS == 64
#define MAGNITUDE uint64_t
#else
#define MAGNITUDE uint
#endif

MAGNITUDE magnitude(T v) {
    return v < T(0) ? MAGNITUDE(0) - MAGNITUDE(v) : MAGNITUDE(v);
}

T with_sign(MAGNITUDE size, bool below) {
    return T(below ? MAGNITUDE(0) - size : size);
}

T op_abs(T x) {
    return T(magnitude(x));
}

// Towards 0.
T op_quotient(T x, T y) {
    MAGNITUDE divisor = y == T(0) ? MAGNITUDE(1) : magnitude(y);
    T quotient = with_sign(magnitude(x) / divisor, (x < T(0)) != (y < T(0)));
    return y == T(0) ? T(0) : quotient;
}

// What is left by the division towards minus infinity: it has the sign of y.
T op_mod(T x, T y) {
    MAGNITUDE divisor = y == T(0) ? MAGNITUDE(1) : magnitude(y);
    T rest = with_sign(magnitude(x) % divisor, x < T(0));
    T other = rest != T(0) && (rest < T(0)) != (y < T(0)) ? rest + y : rest;
    return y == T(0) ? T(0) : other;
}

T op_bit_and(T x, T y) {
    return x & y;
}

T op_bit_or(T x, T y) {
    return x | y;
}

T op_bit_xor(T x, T y) {
    return x ^ y;
}

T op_bit_not(T x) {
    return ~x;
}

// By the lower bits of y: 32 is 0 for numbers of 32 bits.
T op_shift_left(T x, T y) {
    return x << (uint(y) & uint(INTEGER_BITS - 1));
}

T op_shift_right(T x, T y) {
    return x >> (uint(y) & uint(INTEGER_BITS - 1));
}

T every_integer_op(T x) {
    x = op_abs(x);
    x = op_quotient(x, x);
    x = op_mod(x, x);
    x = op_bit_and(x, x);
    x = op_bit_or(x, x);
    x = op_bit_xor(x, x);
    x = op_bit_not(x);
    x = op_shift_left(x, x);
    x = op_shift_right(x, x);
    return x;
}
