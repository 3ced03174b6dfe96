// Compares, logic and selection: a truth value is 0 or 1 of T, and every value but 0 counts as true, NaN too. A NaN is
// told by its bits: it is equal to nothing, not even to itself, and neither less nor greater.
T truth_value(bool truth) {
    return truth ? T(1) : T(0);
}

bool is_true(T v) {
    return is_nan_bits(v) || v != T(0);
}

bool comparable(T x, T y) {
    return !is_nan_bits(x) && !is_nan_bits(y);
}

T op_equal(T x, T y) {
    return truth_value(comparable(x, y) && x == y);
}

T op_not_equal(T x, T y) {
    return truth_value(!comparable(x, y) || x != y);
}

T op_less(T x, T y) {
    return truth_value(comparable(x, y) && x < y);
}

T op_less_equal(T x, T y) {
    return truth_value(comparable(x, y) && x <= y);
}

T op_greater(T x, T y) {
    return truth_value(comparable(x, y) && x > y);
}

T op_greater_equal(T x, T y) {
    return truth_value(comparable(x, y) && x >= y);
}

T op_logical_and(T x, T y) {
    return truth_value(is_true(x) && is_true(y));
}

T op_logical_or(T x, T y) {
    return truth_value(is_true(x) || is_true(y));
}

T op_logical_xor(T x, T y) {
    return truth_value(is_true(x) != is_true(y));
}

T op_logical_not(T x) {
    return truth_value(!is_true(x));
}

// Selects, and never multiplies: what is not chosen does not matter, NaN neither.
T op_where(T condition, T x, T y) {
    return is_true(condition) ? x : y;
}

#ifndef INTEGER
// x - y floor(x / y), each of the three rounded.
T op_mod(T x, T y) {
    return x - mul(y, p_floor(flushed(p_divide(x, y))));
}
#endif

T every_choice(T x) {
    x = op_equal(x, x);
    x = op_not_equal(x, x);
    x = op_less(x, x);
    x = op_less_equal(x, x);
    x = op_greater(x, x);
    x = op_greater_equal(x, x);
    x = op_logical_and(x, x);
    x = op_logical_or(x, x);
    x = op_logical_xor(x, x);
    x = op_logical_not(x);
    x = op_where(x, x, x);
#ifndef INTEGER
    x = op_mod(x, x);
#endif
    return x;
}
