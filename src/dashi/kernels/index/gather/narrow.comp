// A word of elements that are smaller than words, from the words that they lie in.
void main() {
    uint bits = 32u / PACK;
    uint mask = (1u << bits) - 1u;
    for (uint word = gl_GlobalInvocationID.x; word < items; word += stride) {
        uint elements = 0u;
        for (uint k = 0u; k < PACK; k++) {
            uint i = word * PACK + k;
            uint from = i < n ? index[i] : m;
            if (from < m) {
                elements |= ((x[from / PACK] >> (from % PACK * bits)) & mask) << (k * bits);
            }
        }
        result[word] = elements;
    }
}
