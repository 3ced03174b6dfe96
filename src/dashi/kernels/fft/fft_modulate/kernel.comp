void main() {
    T by = canon(scale);
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint column = i % columns;
        uint place = i / columns % m;
        uint line = i / columns / m;
        uint j = rows > 1u ? place % rows * (n / rows) + place / rows : place;
        P sum = P(0);
        if (j < n) {
            uint from = (line * n + j) * columns + column;
            P z = P(canon(x[from].x), canon(x[from].y));
            P w = P(canon(factor[j].x), canon(factor[j].y));
            T real = mul(w.x, z.x) - mul(w.y, z.y);
            T imaginary = mul(w.x, z.y) + mul(w.y, z.x);
            sum = P(canon(mul(canon(real), by)), canon(mul(canon(imaginary), by)));
        }
        result[i] = sum;
    }
}
