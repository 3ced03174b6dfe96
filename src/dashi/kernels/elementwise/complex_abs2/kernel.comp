void main() {
    for (uint i = gl_GlobalInvocationID.x; i < n; i += stride) {
        T a = canon(x[2u * i]);
        T b = canon(x[2u * i + 1u]);
        result[i] = canon(mul(a, a) + mul(b, b));
    }
}
