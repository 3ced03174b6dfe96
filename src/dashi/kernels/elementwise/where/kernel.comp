// All bits of every element that is not zero, no bits elsewhere. `counted` leaves the signs of floats out: -0 is zero.
uint truth(uint words) {
    uint bits = words & counted;
    if (size == 1u) {
        bits |= (bits >> 4) & 0x0f0f0f0fu;
        bits |= (bits >> 2) & 0x03030303u;
        bits |= (bits >> 1) & 0x01010101u;
        return (bits & 0x01010101u) * 0xffu;
    }
    if (size == 2u) {
        return ((bits & 0xffffu) != 0u ? 0xffffu : 0u) | (bits > 0xffffu ? 0xffff0000u : 0u);
    }
    return bits != 0u ? 0xffffffffu : 0u;
}

// The lower word of a pair counts as a whole.
uvec2 truth(uvec2 words) {
    return uvec2((words.x | (words.y & counted)) != 0u ? 0xffffffffu : 0u);
}

uvec4 truth(uvec4 words) {
    if (size == 8u) {
        return uvec4(truth(words.xy), truth(words.zw));
    }
    return uvec4(truth(words.x), truth(words.y), truth(words.z), truth(words.w));
}

WORDS apply(uint i) {
    WORDS chosen = truth(condition[i]);
    return (x[i] & chosen) | (y[i] & ~chosen);
}
