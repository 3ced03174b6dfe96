T apply(uint i) {
    T w = canon(vorticity[i]);
    T n = canon(normal[i]);
    T s = canon(shear[i]);
    return mul(T(0.5), mul(w, w) - (mul(n, n) + mul(s, s)));
}
