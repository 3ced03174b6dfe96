void main() {
    for (uint i = gl_GlobalInvocationID.x; i < n; i += stride) {
        uint value = x[i];
        for (uint step = 0u; step < steps; step++) {
            value = 1664525u * value + 1013904223u;
        }
        result[i] = value;
    }
}
