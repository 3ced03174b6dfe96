T apply(uint i) {
    T v = canon(x[i]);
    return (i & 1u) != 0u ? -v : v;
}
