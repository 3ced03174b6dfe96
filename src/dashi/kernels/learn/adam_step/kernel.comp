// One step of Adam. The corrections of both means for this step come from a row of `corrections`.
void main() {
    T first = canon(corrections[2u * place]);
    T second = canon(corrections[2u * place + 1u]);
    T keep_mean = canon(beta1);
    T keep_square = canon(beta2);
    for (uint i = gl_GlobalInvocationID.x; i < n; i += stride) {
        T g = canon(gradient[i]);
        T mean_now = canon(mul(keep_mean, canon(mean[i])) + mul(T(1) - keep_mean, g));
        T square_now = canon(mul(keep_square, canon(square[i])) + mul(T(1) - keep_square, mul(g, g)));
        T size = p_sqrt(mul(square_now, second)) + canon(epsilon);
        T change = p_divide(mul(canon(rate), mul(mean_now, first)), size);
        weights_next[i] = canon(canon(weights[i]) - change);
        mean_next[i] = mean_now;
        square_next[i] = square_now;
    }
}
