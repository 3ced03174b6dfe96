// The loop round apply (elementwise.glsl) for arrays of halves, computed in fp32: n counts vectors of 16 bytes. The
// generated text before this gives every input two numbers, those of a word, under the input's own name, so that
// apply(i) is one of two results. The last vector may reach past the end of the arrays, into bytes that mean nothing.
#include "halves.glsl"

float apply(uint i);

void main() {
    for (uint j = gl_GlobalInvocationID.x; j < n; j += stride) {
        Vectors given = read_vectors(j);
        uvec4 made;
        [[unroll]] for (uint word = 0u; word < 4u; word++) {
            place(given, word);
            made[word] = f16_bits(canon(apply(0u))) | f16_bits(canon(apply(1u))) << 16;
        }
        result[j] = made;
    }
}
