// The loop round apply (elementwise.glsl) for arrays that are a whole number of vectors of 16 bytes: n counts vectors.
// The generated text before this gives every input one vector under the input's own name, so that apply(i) is one
// element of a vector. All vectors of an invocation are read before the first is written: result may be the same buffer
// as an input.
T apply(uint i);

V apply_vector(Vectors given) {
    place(given);
#if V_LANES == 4
    return V(canon(apply(0u)), canon(apply(1u)), canon(apply(2u)), canon(apply(3u)));
#else
    return V(canon(apply(0u)), canon(apply(1u)));
#endif
}

void main() {
    for (uint start = gl_WorkGroupID.x * LOCAL * EACH; start < n; start += stride) {
        uint first = start + gl_LocalInvocationID.x;
        Vectors given[EACH];
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            given[q] = read_vectors(min(first + q * LOCAL, n - 1u));
        }
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            V made = apply_vector(given[q]);
            if (first + q * LOCAL < n) {
                result[first + q * LOCAL] = made;
            }
        }
    }
}
