// One pass over arrays of any strides: element i of the results has the coordinates of i in the shape SIZE0..SIZE7, and
// an input is read where OFFSET and its strides say. Fused kernels replace `bring`, `apply` and `tail`, as in flat.comp.
// Strides may be negative: numbers of 32 bits wrap round.
#include "ops.glsl"
#include "scalars.glsl"
#include "apply.glsl"

void main() {
    for (uint start = gl_WorkGroupID.x * LOCAL * EACH; start < n; start += stride) {
        uint first = start + gl_LocalInvocationID.x;
        Values values[EACH];
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            values[q] = bring(place_of(min(first + q * LOCAL, n - 1u)));
        }
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            Results results = apply(flushed_values(values[q]));
            if (first + q * LOCAL < n) {
                tail(first + q * LOCAL, canonical(results));
            }
        }
    }
}
