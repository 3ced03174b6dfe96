// The sum of a whole segment lies where it begins; that of an empty one is +0.
void main() {
    for (uint s = gl_GlobalInvocationID.x; s < items; s += stride) {
        uint begin = begins[s];
        T total = T(0.0);
        if (begin < begins[s + 1u]) {
            total = sums[begin];
        }
        result[s] = canon(canon(base[s]) + total);
    }
}
