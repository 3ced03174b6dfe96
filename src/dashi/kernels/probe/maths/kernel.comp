T apply(uint i) {
    T a = x[i];
    T b = y[i];
    switch (function) {
    case 0: return p_divide(a, b);
    case 1: return p_reciprocal(a);
    case 2: return p_sqrt(a);
    case 3: return p_rsqrt(a);
    case 4: return p_exp(a);
    case 5: return p_log(a);
    case 6: return p_sin(a);
    case 7: return p_cos(a);
    case 8: return p_tanh(a);
    case 9: return p_softplus(a);
    default: return mul(canon(a), canon(b));
    }
}
