// One level of tree64 more: sums that lie `step` places apart, 64 of them added into the first. What is added up so
// begins and ends in one segment, so no invocation reads what another writes.
//
// A sum of one addend is there already. Sums of more cover over `step` places each, so at most one of them begins in a
// window of `step` places, and it is the one that covers the window's last place. There is one item for each window.
#include "sorted_joins.glsl"

void main() {
    for (uint window = gl_GlobalInvocationID.x; window < items; window += stride) {
        uint last = window * step + (step - 1u);
        uint s = keys[last];
        if (s < m) {
            uint first = last - ((last - begins[s]) & span);
            uint reach = min(begins[s + 1u] - 1u - first, span);
            if (first >= window * step && reach >= step) {
                T total = START;
                for (uint i = 0u; i <= reach; i += step) {
                    JOIN_INTO(total, sums[first + i]);
                }
                sums[first] = total;
            }
        }
    }
}
