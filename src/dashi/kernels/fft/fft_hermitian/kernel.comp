void main() {
    T by = canon(scale);
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint place = i % n;
        uint line = i / n;
        bool mirrored = place >= modes;
        uint j = mirrored ? n - place : place;
        P z = P(canon(x[line * modes + j].x), canon(x[line * modes + j].y));
        T imaginary = canon(mul(mirrored ? -z.y : z.y, by));
        bool real = j == 0u || 2u * j == n;
        result[i] = P(canon(mul(z.x, by)), real ? T(0) : imaginary);
    }
}
