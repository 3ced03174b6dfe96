// Four numbers of fp32 to four of 16 bits, in two words: kernels/halves.py plans it. The kernel defines bits_of. The
// last vector and the last word may reach past the end of the arrays, into bytes that mean nothing.
uint bits_of(float v);

void main() {
    for (uint q = gl_GlobalInvocationID.x; q < n; q += stride) {
        vec4 given = uintBitsToFloat(x[q]);
        uint low = bits_of(canon(given.x)) | bits_of(canon(given.y)) << 16;
        uint high = bits_of(canon(given.z)) | bits_of(canon(given.w)) << 16;
        result[2u * q] = low;
        if (4u * q + 2u < size) {
            result[2u * q + 1u] = high;
        }
    }
}
