void main() {
    for (uint i = gl_GlobalInvocationID.x; i < n; i += stride) {
        uint from = index[i];
        W word = W(0u);
        if (from < m) {
            word = x[from];
        }
        result[i] = word;
    }
}
