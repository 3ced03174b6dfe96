// result (n, m) = x (m, n) with rows and columns exchanged, element by element: for devices with caches and no fast
// shared memory. Neighbours write neighbours.
void main() {
    for (uint i = gl_GlobalInvocationID.x; i < m * n; i += stride) {
        result[i] = x[(i % m) * n + i / m];
    }
}
