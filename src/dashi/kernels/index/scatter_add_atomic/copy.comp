void main() {
    for (uint j = gl_GlobalInvocationID.x; j < m; j += stride) {
        result[j] = base[j];
    }
}
