// i a z
P turned(T a, P z) {
    return P(-mul(a, z.y), mul(a, z.x));
}

P field(uint kind, P z, P psi, T x, T y) {
    switch (kind) {
    case 0u:
        return z;
    case 1u:
        return psi;
    case 2u:
        return turned(y, psi);
    case 3u:
        return turned(-x, psi);
    case 4u:
        return turned(x, z);
    case 5u:
        return turned(y, z);
    case 6u: {
        T twice = mul(x, y) + mul(x, y);
        return P(-mul(twice, psi.x), -mul(twice, psi.y));
    }
    case 7u: {
        T apart = mul(x, x) - mul(y, y);
        return P(mul(apart, psi.x), mul(apart, psi.y));
    }
    case 9u:
        return turned(y - x, psi);
    case 10u:
        return turned(y + x, psi);
    default:
        return P(-psi.x, -psi.y);
    }
}

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint mode = i % plane;
        uint to = i / plane * fields * plane + mode;
        P z = P(canon(modes[i].x), canon(modes[i].y));
        T x = canon(wave_x[mode % columns]);
        T y = canon(wave_y[mode / columns]);
        T less = canon(inverse[mode]);
        P psi = P(mul(z.x, less), mul(z.y, less));
        for (uint f = 0u; f < fields; f++) {
            P made = field(kinds[f], z, psi, x, y);
            result[to + f * plane] = P(canon(made.x), canon(made.y));
        }
    }
}
