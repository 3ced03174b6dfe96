// Activations of recurrent cells by number; the twin is kernels/sequence/_cells.py. Where `which` is a specialisation
// constant the others cost nothing. Needs portable.glsl.
const uint SIGMOID = 0u;
const uint TANH = 1u;
const uint RELU = 2u;
const uint AFFINE = 3u;
const uint LEAKY_RELU = 4u;
const uint THRESHOLDED_RELU = 5u;
const uint SCALED_TANH = 6u;
const uint HARD_SIGMOID = 7u;
const uint ELU = 8u;
const uint SOFTSIGN = 9u;
const uint SOFTPLUS = 10u;

T cell_activation(uint which, T x, T alpha, T beta) {
    T a = canon(alpha);
    T b = canon(beta);
    T v = x;
    if (which == SIGMOID) {
        T e = p_exp(-abs(x));
        v = p_divide(x < T(0) ? e : T(1), T(1) + e);
    } else if (which == TANH) {
        v = p_tanh(x);
    } else if (which == RELU) {
        v = x < T(0) ? T(0) : x;
    } else if (which == AFFINE) {
        v = mul(a, x) + b;
    } else if (which == LEAKY_RELU) {
        v = x < T(0) ? mul(a, x) : x;
    } else if (which == THRESHOLDED_RELU) {
        v = x <= a ? T(0) : x;
    } else if (which == SCALED_TANH) {
        v = mul(a, p_tanh(mul(b, x)));
    } else if (which == HARD_SIGMOID) {
        T line = canon(mul(a, x) + b);
        v = is_nan_bits(line) ? line : (line < T(0) ? T(0) : (line > T(1) ? T(1) : line));
    } else if (which == ELU) {
        v = x < T(0) ? mul(a, canon(p_exp(x) - T(1))) : x;
    } else if (which == SOFTSIGN) {
        v = p_divide(x, canon(T(1) + abs(x)));
    } else if (which == SOFTPLUS) {
        v = p_softplus(x);
    }
    return canon(is_nan_bits(x) ? x : v);
}
