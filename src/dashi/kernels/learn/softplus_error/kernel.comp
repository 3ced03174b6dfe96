// softplus(x) - target, and the slope by x of half the square of that, times scale.
void main() {
    for (uint i = gl_GlobalInvocationID.x; i < n; i += stride) {
        T v = canon(x[i]);
        T missed = canon(p_softplus(v) - canon(target[i]));
        // The derivative of softplus: 1 / (1 + e^-x), from e^-|x| so that nothing overflows.
        T e = p_exp(-abs(v));
        T steepness = p_divide(v < T(0) ? e : T(1), T(1) + e);
        error[i] = missed;
        slope[i] = canon(mul(mul(canon(scale), missed), steepness));
    }
}
