// Along the columns, of the means along rows; then, if asked for, what they leave of the field.
void main() {
    uint plane = h * w;
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint start = i / plane * plane + i % w;
        uint y = (i % plane / w + h - radius % h) % h;
        T sum = T(0);
        for (uint r = 0u; r <= 2u * radius; r++) {
            sum += canon(across[start + y * w]);
            y = y + 1u == h ? 0u : y + 1u;
        }
        T made = mul(canon(sum), canon(weight));
        result[i] = canon(detail == 0u ? made : canon(field[i]) - made);
    }
}
