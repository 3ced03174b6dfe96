void main() {
    for (uint j = gl_GlobalInvocationID.x; j < m; j += stride) {
        owner[j] = 0u;
    }
}
