// Four numbers of 16 bits, in two words, to four of fp32: kernels/halves.py plans it. The kernel defines value_of.
float value_of(uint h);

void main() {
    for (uint q = gl_GlobalInvocationID.x; q < n; q += stride) {
        uint low = x[2u * q];
        uint high = x[min(2u * q + 1u, (size - 1u) / 2u)];
        vec4 made = vec4(value_of(low & 0xffffu), value_of(low >> 16), value_of(high & 0xffffu), value_of(high >> 16));
#if RESULT_QUADS
        result[q] = floatBitsToUint(made);
#else
        [[unroll]] for (uint i = 0u; i < 4u; i++) {
            if (4u * q + i < size) {
                result[4u * q + i] = made[i];
            }
        }
#endif
    }
}
