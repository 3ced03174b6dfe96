// result[i] = apply(i) for every i below n: the author writes apply, this is the loop round it.
T apply(uint i);

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < n; i += stride) {
        result[i] = canon(apply(i));
    }
}
