// result[q] = quad(q), four pixels at once, for every q below n: kernels/pixels.py plans it.
// An invocation makes BATCH quads, a workgroup apart; all are read before one is written, so no load waits for another.
uvec4 quad(uint q);

void main() {
    for (uint first = gl_WorkGroupID.x * (256u * BATCH) + gl_LocalInvocationID.x; first < n; first += stride) {
        uvec4 made[BATCH];
        [[unroll]] for (uint k = 0u; k < BATCH; k++) {
            made[k] = quad(min(first + k * 256u, n - 1u));
        }
        [[unroll]] for (uint k = 0u; k < BATCH; k++) {
            if (first + k * 256u < n) {
                result[first + k * 256u] = made[k];
            }
        }
    }
}
