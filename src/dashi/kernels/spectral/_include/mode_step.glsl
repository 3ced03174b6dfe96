P term(P z, T t) {
    T weight = canon(t);
    return P(mul(canon(z.x), weight), mul(canon(z.y), weight));
}

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint mode = i % plane;
        P x = P(canon(x0[i].x), canon(x0[i].y));
        P change = weighted(i, mode);
        T part = last_digits(canon(x0[i - mode].y));
        T imaginary = mode == 0u ? ticked(x.y) : incremented(x.y, change.y, part);
        result[i] = P(canon(incremented(x.x, change.x, part)), canon(imaginary));
    }
}
