void main() {
    for (uint j = gl_GlobalInvocationID.x; j < m; j += stride) {
        uint claim = owner[j];
        W word;
        if (claim == 0u) {
            word = base[j];
        } else {
            word = values[claim - 1u];
        }
        result[j] = word;
    }
}
