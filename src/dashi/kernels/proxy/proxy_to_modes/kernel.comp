void main() {
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint code = codes[i % plane];
        uint first = code / 2u * 2u - 2u;
        P pair = P(0);
        if (code >= 2u && first + 1u < size) {
            uint at = (i / plane) * size + first;
            T imaginary = canon(z[at + 1u]);
            pair = P(canon(z[at]), code % 2u == 1u ? canon(-imaginary) : imaginary);
        }
        result[i] = pair;
    }
}
