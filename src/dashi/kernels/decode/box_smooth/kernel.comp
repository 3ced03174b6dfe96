// Along the rows: the mean of the 2 radius + 1 neighbours, from the left.
void main() {
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint start = i / w * w;
        uint x = (i - start + w - radius % w) % w;
        T sum = T(0);
        for (uint r = 0u; r <= 2u * radius; r++) {
            sum += canon(field[start + x]);
            x = x + 1u == w ? 0u : x + 1u;
        }
        result[i] = canon(mul(canon(sum), canon(weight)));
    }
}
