// Real lines of an odd number of values from their modes: the other half are the conjugates. The imaginary part of
// mode 0 is not looked at.

P fft_load(uint outer, uint inner, uint j, uint hop) {
    uint i = j + hop;
    bool below = i <= N / 2u;
    P z = source[outer * (N / 2u + 1u) + (below ? i : N - i)];
    return P(z.x, i == 0u ? T(0) : below ? z.y : -z.y);
}

void fft_store(uint outer, uint inner, uint j, uint hop, P z) {
    result[outer * N + j + hop] = z.x;
}
