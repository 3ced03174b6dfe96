// Particles and meshes of n x n points, periodic: weights of M4' and M6' (kernels/vortex/_mesh.py), and where a particle
// is that started at a point and went `reach` times its velocity, at most one cell along each axis. SIX chooses M6'.
#include "not_a_number.glsl"

// A polynomial of the fifth degree, by Horner.
T quintic(T x, T c0, T c1, T c2, T c3, T c4, T c5) {
    T value = mul(x, c5) + c4;
    value = mul(x, value) + c3;
    value = mul(x, value) + c2;
    value = mul(x, value) + c1;
    return mul(x, value) + c0;
}

T m4_prime(T away) {
    if (away < T(1)) {
        T square = mul(away, away);
        return T(1) - mul(T(2.5), square) + mul(T(1.5), mul(square, away));
    }
    if (away < T(2)) {
        T short_of = T(2) - away;
        return mul(mul(T(0.5), mul(short_of, short_of)), T(1) - away);
    }
    return T(0);
}

// 24 times M6', whose coefficients are whole numbers then.
T m6_prime(T away) {
    if (away < T(1)) {
        return quintic(away, T(24), T(0), T(-30), T(-70), T(126), T(-50));
    }
    if (away < T(2)) {
        return quintic(away - T(1), T(0), T(-16), T(16), T(39), T(-64), T(25));
    }
    if (away < T(3)) {
        return quintic(away - T(2), T(0), T(2), T(-1), T(-9), T(13), T(-5));
    }
    return T(0);
}

T mesh_weight(T x) {
    if (SIX != 0u) {
        return mul(m6_prime(abs(x)), canon(inverse24));
    }
    return m4_prime(abs(x));
}

int mesh_reach() {
    return SIX != 0u ? 4 : 3;
}

// Point (y + a, x + b) of channel c of a member, a and b from -4 to 4.
uint mesh_place(uint image, uint y, int a, uint x, int b) {
    uint row = uint(int(y + 4u * n) + a) % n;
    uint column = uint(int(x + 4u * n) + b) % n;
    return (image * n + row) * n + column;
}

bool goes_too_far(T dx, T dy) {
    return !(abs(dx) <= T(1) && abs(dy) <= T(1));
}
