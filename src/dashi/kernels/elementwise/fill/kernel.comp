// The two words that repeat, as the word, the pair or the vector that is asked for.
uint repeated(uint like) {
    return low;
}

uvec2 repeated(uvec2 like) {
    return uvec2(low, high);
}

uvec4 repeated(uvec4 like) {
    return uvec4(low, high, low, high);
}

WORDS apply(uint i) {
    return repeated(WORDS(0u));
}
