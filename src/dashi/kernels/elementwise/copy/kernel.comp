WORDS apply(uint i) {
    return x[i];
}
