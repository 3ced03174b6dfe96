T apply(uint i) {
    uint part = i & ~1u;
    T a = canon(x[part]);
    T b = canon(x[part + 1u]);
    T c = canon(re);
    T d = canon(im);
    bool imaginary = i != part;
    T first = mul(a, imaginary ? d : c);
    T second = mul(b, imaginary ? c : d);
    return imaginary ? first + second : first - second;
}
