void main() {
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint mode = i % plane;
        P a = P(canon(factor[mode].x), canon(factor[mode].y));
        P z = P(canon(modes[i].x), canon(modes[i].y));
        T real = mul(a.x, z.x) - mul(a.y, z.y);
        T imaginary = mul(a.x, z.y) + mul(a.y, z.x);
        result[i] = P(canon(canon(x[i].x) + real), canon(canon(x[i].y) + imaginary));
    }
}
