// Where segment s begins in the sorted targets, and the last one ends: how many targets are below s, by bisection.
void main() {
    for (uint s = gl_GlobalInvocationID.x; s < items; s += stride) {
        uint low = 0u;
        uint high = n;
        while (low < high) {
            uint middle = low + (high - low) / 2u;
            if (keys[middle] < s) {
                low = middle + 1u;
            } else {
                high = middle;
            }
        }
        begins[s] = low;
    }
}
