void main() {
    for (uint i = gl_GlobalInvocationID.x; i < n; i += stride) {
        uint place = index[i];
        if (place < m) {
            atomicAdd(result[place], values[i]);
        }
    }
}
