// result[i] = pixel(i) for every i below n: where the number of pixels is no multiple of four.
uint pixel(uint i);

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < n; i += stride) {
        result[i] = pixel(i);
    }
}
