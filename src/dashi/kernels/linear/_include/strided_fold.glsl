// Adds one more addend to the sums of the next level of the tree, whose last makes results of them.
#include "batch_place.glsl"

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < elements; i += stride) {
        Place at = place_of(i / n / m);
        at.row = i / n % m;
        at.column = i % n;
        store_sum(i, part[i], at);
    }
}
