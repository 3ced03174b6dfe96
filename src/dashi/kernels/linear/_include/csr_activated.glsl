// An output of psi(z A + b), of the sum of its list. Needs psi.glsl.
T activated(uint out_at, bool good, T total) {
    T made = good ? canon(total) : not_a_number();
    return apply_psi(PSI, made + canon(b[out_at]), alpha, low, high);
}
