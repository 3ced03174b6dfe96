// The admissible nonlinearities of a step, by number; the twin is kernels/psi.py. Where `which` is a specialisation
// constant the others cost nothing. Needs portable.glsl.
#ifndef PSI_GLSL
#define PSI_GLSL

const uint PSI_NONE = 0u;
const uint PSI_SQUASH = 1u;
const uint PSI_SOFTPLUS = 2u;
const uint PSI_CLAMP = 3u;

// x itself, tanh(slope x), log(1 + e^x), or x limited to lowest..highest: canonical, and NaN stays NaN.
T apply_psi(uint which, T x, T slope, T lowest, T highest) {
    T v = canon(x);
    if (which == PSI_SQUASH) {
        v = p_tanh(mul(canon(slope), v));
    } else if (which == PSI_SOFTPLUS) {
        v = p_softplus(v);
    } else if (which == PSI_CLAMP) {
        T least = canon(lowest);
        T most = canon(highest);
        T inside = v < least ? least : (v > most ? most : v);
        v = is_nan_bits(v) ? v : inside;
    }
    return canon(v);
}

#endif
