// Entry e of a mode's list adds weights[e] w_p w_q, real part (part 0) or imaginary part; kernels/mode_triads.py has the
// layout of words. A mode past the end gives NaN.
T mode_product(uint part, uint e) {
    uint word = words[e];
    uint p = 2u * (word & 0x3fffu);
    uint q = 2u * (word >> 14u & 0x3fffu);
    bool inside = p < width && q < width;
    p = inside ? p : 0u;
    q = inside ? q : 0u;
    T a = state_value(p);
    T b = state_value(p + 1u);
    T c = state_value(q);
    T d = state_value(q + 1u);
    b = (word >> 28u & 1u) == 1u ? -b : b;
    d = (word >> 29u & 1u) == 1u ? -d : d;
    T made = part == 0u ? mul(a, c) - mul(b, d) : mul(a, d) + mul(b, c);
    return inside ? mul(canon(weights[e]), made) : not_a_number();
}
