T apply(uint i) {
    return apply_psi(PSI, canon(x[i]) + canon(b[i % width]), alpha, low, high);
}
