T factor(uint member, uint band) {
    T there = canon(present[member * bands + band]);
    T wanted = canon(canon(z[member * d + first + band]) - there);
    T found = canon(drawn[member * bands + band]);
    if (is_nan_bits(wanted) || is_nan_bits(found) || wanted <= T(0) || found <= T(0)) {
        return T(0);
    }
    return p_sqrt(p_divide(wanted, found));
}

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint member = i / plane;
        uint number = band[i % plane];
        P made = P(0);
        if (number != 0u && number <= bands) {
            T by = factor(member, number - 1u);
            made = P(mul(by, canon(x[i].x)), mul(by, canon(x[i].y)));
        }
        result[i] = P(canon(made.x), canon(made.y));
    }
}
