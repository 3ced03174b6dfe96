// Velocity of one atom on one target in the plane; kernels/vortex/_induction.py has the formulas, and is the twin. Needs
// the buffer `terms`, the specialisation constants PERIODIC, ALGEBRAIC and MIXED, and the numbers box and inverse_box.
#if T_IS_F64
const uint CORE_TERMS = 15u;
const uint LATTICE_TERMS = 27u;
#else
const uint CORE_TERMS = 9u;
const uint LATTICE_TERMS = 13u;
#endif
const uint CORE = 2u;
const uint LATTICE = 17u;

// The h of the velocity h J r at r^2; core is d^2, or 1/d^2 where it is Gaussian and not mixed.
T induction_factor(T square, T core) {
    if (ALGEBRAIC != 0u) {
        return p_reciprocal(square + core);
    }
    T inverse = core;
    if (MIXED != 0u) {
        inverse = p_reciprocal(core);
    }
    T ratio = mul(square, inverse);
    if (ratio < T(0.5)) {
        T near = canon(terms[CORE + CORE_TERMS - 1u]);
        [[unroll]] for (uint k = CORE_TERMS - 1u; k > 0u; k--) {
            near = mul(near, ratio) + canon(terms[CORE + k - 1u]);
        }
        return mul(near, inverse);
    }
    return p_divide(T(1) - p_exp(-ratio), square);
}

// zeta(z) - 1/z - pi conj(z), z in sides of the box.
P induction_images(T x, T y) {
    T x2 = mul(x, x) - mul(y, y);
    T y2 = mul(x, y) + mul(x, y);
    T x3 = mul(x2, x) - mul(y2, y);
    T y3 = mul(x2, y) + mul(y2, x);
    T x4 = mul(x2, x2) - mul(y2, y2);
    T y4 = mul(x2, y2) + mul(x2, y2);
    T real = canon(terms[LATTICE + LATTICE_TERMS - 1u]);
    T imaginary = T(0);
    [[unroll]] for (uint k = LATTICE_TERMS - 1u; k > 0u; k--) {
        T following = mul(real, x4) - mul(imaginary, y4) + canon(terms[LATTICE + k - 1u]);
        imaginary = mul(real, y4) + mul(imaginary, x4);
        real = following;
    }
    T pi = canon(terms[1]);
    return P(-(mul(x3, real) - mul(y3, imaginary)) - mul(pi, x), -(mul(x3, imaginary) + mul(y3, real)) + mul(pi, y));
}

P induced(T dx, T dy, T scaled, T core) {
    if (PERIODIC != 0u) {
        dx = dx - mul(p_round(mul(dx, inverse_box)), box);
        dy = dy - mul(p_round(mul(dy, inverse_box)), box);
    }
    T strength = mul(scaled, induction_factor(mul(dx, dx) + mul(dy, dy), core));
    P made = P(-mul(strength, dy), mul(strength, dx));
    if (PERIODIC != 0u) {
        P more = induction_images(mul(dx, inverse_box), mul(dy, inverse_box));
        strength = mul(scaled, inverse_box);
        made = P(made.x + mul(strength, more.y), made.y + mul(strength, more.x));
    }
    return made;
}
