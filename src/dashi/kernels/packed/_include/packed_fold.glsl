// Adds one more addend to the sums of the next level of the tree.
void main() {
    for (uint i = gl_GlobalInvocationID.x; i < n; i += stride) {
        T total = fresh != 0u ? part[i] : result[i] + part[i];
        result[i] = last != 0u ? canon(total) : total;
    }
}
