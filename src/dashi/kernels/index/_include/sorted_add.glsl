// The sum of a whole segment lies where it begins; that of an empty one is what sums begin from.
#include "sorted_joins.glsl"

void main() {
    for (uint s = gl_GlobalInvocationID.x; s < items; s += stride) {
        uint begin = begins[s];
        T total = START;
        if (begin < begins[s + 1u]) {
            total = sums[begin];
        }
        result[s] = canon(JOIN(canon(base[s]), total));
    }
}
