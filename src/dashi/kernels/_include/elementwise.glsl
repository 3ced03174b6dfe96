// result[i] = apply(i) for every i below n: the author writes apply, this is the loop round it. A workgroup takes
// LOCAL * EACH neighbours at a time, an invocation EACH of them, LOCAL apart. Results are kept until all are made: the
// loads of one element need not wait for the store of another, even where result is the same buffer as an input.
// Past the end the last element is made once more, and not stored: so no load waits for a test.
T apply(uint i);

void main() {
    for (uint start = gl_WorkGroupID.x * LOCAL * EACH; start < n; start += stride) {
        uint first = start + gl_LocalInvocationID.x;
        T made[EACH];
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            made[q] = canon(apply(min(first + q * LOCAL, n - 1u)));
        }
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            if (first + q * LOCAL < n) {
                result[first + q * LOCAL] = made[q];
            }
        }
    }
}
