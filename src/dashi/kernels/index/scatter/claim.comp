// The highest i wins a place, whatever the order in which invocations arrive; 0 means that nobody claimed it.
void main() {
    for (uint i = gl_GlobalInvocationID.x; i < n; i += stride) {
        uint to = index[i];
        if (to < m) {
            atomicMax(owner[to], i + 1u);
        }
    }
}
