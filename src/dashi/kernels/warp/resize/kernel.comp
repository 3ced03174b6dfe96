// Two neighbours along a line, with their weights: the first alone where the second has none.
T between(T p, T q, T first, T second) {
    return second == T(0) ? p : canon(mul(p, first) + mul(q, second));
}

// Two neighbours of row `line` of x, mixed along it.
T along(uint line, uint column) {
    uint at = line * w;
    uint edge = 2u * (HEIGHT + column);
    T p = canon(x[at + min(places[edge], w - 1u)]);
    T q = canon(x[at + min(places[edge + 1u], w - 1u)]);
    return between(p, q, canon(weights[edge]), canon(weights[edge + 1u]));
}

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uint column = i % WIDTH;
        uint row = i / WIDTH % HEIGHT;
        uint plane = i / WIDTH / HEIGHT * h;
        T p = along(plane + min(places[2u * row], h - 1u), column);
        T q = along(plane + min(places[2u * row + 1u], h - 1u), column);
        result[i] = between(p, q, canon(weights[2u * row]), canon(weights[2u * row + 1u]));
    }
}
