P term(P z, T t) {
    T weight = canon(t);
    return P(mul(canon(z.x), weight), mul(canon(z.y), weight));
}

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        P sums = weighted(i, i % plane);
        result[i] = P(canon(sums.x), canon(sums.y));
    }
}
