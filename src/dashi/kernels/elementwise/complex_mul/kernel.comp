T apply(uint i) {
    uint re = i & ~1u;
    T a = canon(x[re]);
    T b = canon(x[re + 1u]);
    T c = canon(y[re]);
    T d = canon(y[re + 1u]);
    bool imaginary = i != re;
    T first = mul(a, imaginary ? d : c);
    T second = mul(b, imaginary ? c : d);
    return imaginary ? first + second : first - second;
}
