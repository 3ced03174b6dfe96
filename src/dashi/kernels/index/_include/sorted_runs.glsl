// The first level of tree64: the sum (or whatever JOIN makes) of every run of 64 values of a segment, left at the place where the run begins.
#include "sorted_joins.glsl"

void main() {
    for (uint k = gl_GlobalInvocationID.x; k < items; k += stride) {
        uint s = keys[k];
        if (s < m && (k - begins[s]) % 64u == 0u) {
            uint end = min(begins[s + 1u], k + 64u);
            T total = START;
            for (uint i = k; i < end; i++) {
                JOIN_INTO(total, canon(values[places[i]]));
            }
            sums[k] = total;
        }
    }
}
