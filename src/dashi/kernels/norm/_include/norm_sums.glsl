// What layer_norm and rms_norm share: sums, and 1 / sqrt(total / n + eps).
T start0() {
    return start_sum();
}

T join0(T a, T b) {
    return join_sum(a, b);
}

T start1() {
    return start_sum();
}

T join1(T a, T b) {
    return join_sum(a, b);
}

T mean_of(T total) {
    return p_divide(total, canon(count));
}

T scale_of(T total) {
    return p_reciprocal(p_sqrt(canon(mean_of(total)) + canon(number0)));
}
