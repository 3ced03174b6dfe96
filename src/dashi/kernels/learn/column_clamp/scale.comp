void main() {
    for (uint i = gl_GlobalInvocationID.x; i < size; i += stride) {
        T value = canon(x[i]);
        result[i] = canon(i / n < rows ? mul(value, factors[i % n]) : value);
    }
}
