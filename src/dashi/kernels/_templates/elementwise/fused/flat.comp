// One pass over arrays that are a whole number of vectors of 16 bytes, all of one shape: n counts vectors. Fused kernels
// replace `bring`, `apply` and `tail`, whose bodies here only show what goes where. All vectors of an invocation are read
// before the first is written: a result may be the same buffer as an input. What is numbered by operand is generated
// (kernels/_fused_glsl.py).
#include "ops.glsl"
#include "scalars.glsl"
#include "apply.glsl"

ResultVectors apply_lanes(Vectors vectors) {
    Results a = apply(lane_of(vectors, 0u));
    Results b = apply(lane_of(vectors, 1u));
#if V_LANES == 4
    Results c = apply(lane_of(vectors, 2u));
    Results d = apply(lane_of(vectors, 3u));
#define JOIN(y) V(canon(a.y), canon(b.y), canon(c.y), canon(d.y))
#else
#define JOIN(y) V(canon(a.y), canon(b.y))
#endif
    return ResultVectors(JOIN_ALL);
}

void main() {
    for (uint start = gl_WorkGroupID.x * LOCAL * EACH; start < n; start += stride) {
        uint first = start + gl_LocalInvocationID.x;
        Vectors vectors[EACH];
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            vectors[q] = bring(min(first + q * LOCAL, n - 1u));
        }
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            ResultVectors results = apply_lanes(vectors[q]);
            if (first + q * LOCAL < n) {
                tail(first + q * LOCAL, results);
            }
        }
    }
}
