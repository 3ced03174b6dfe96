void main() {
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        result[i] = 0u;
    }
}
