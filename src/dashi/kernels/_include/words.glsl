// result[i] = apply(i) for every i below n, in WORDS: the loop of elementwise.glsl for kernels that move bits.
WORDS apply(uint i);

void main() {
    for (uint start = gl_WorkGroupID.x * LOCAL * EACH; start < n; start += stride) {
        uint first = start + gl_LocalInvocationID.x;
        WORDS moved[EACH];
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            moved[q] = apply(min(first + q * LOCAL, n - 1u));
        }
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            if (first + q * LOCAL < n) {
                result[first + q * LOCAL] = moved[q];
            }
        }
    }
}
