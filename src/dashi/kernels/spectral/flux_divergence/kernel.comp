void main() {
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint mode = i % plane;
        uint from = i / plane * 3u * plane + mode;
        T kx = canon(wave_x[mode % columns]);
        T ky = canon(wave_y[mode / columns]);
        P a = x[from];
        P b = x[from + plane];
        P c = x[from + 2u * plane];
        T real = mul(kx, canon(b.y)) + mul(ky, canon(c.y));
        T imaginary = mul(kx, canon(b.x)) + mul(ky, canon(c.x));
        result[i] = P(canon(canon(a.x) - real), canon(canon(a.y) + imaginary));
    }
}
