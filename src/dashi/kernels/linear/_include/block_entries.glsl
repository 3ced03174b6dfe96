// Entry e of a list of blocks is row e % SIDE of block e / SIDE: blocks[e, j] multiplies component places[e / SIDE] *
// SIDE + e % SIDE of the state. SIDE is a specialisation constant: division by it is then cheap. A row of blocks past the end gives NaN.
uint block_column;  // of the output in its block

T product(uint list_kind, uint e) {
    uint t = e / SIDE;
    uint row = places[t];
    bool inside = row < width / SIDE;
    T factor = state_value(inside ? row * SIDE + (e - t * SIDE) : 0u);
    return inside ? mul(factor, canon(blocks[e * SIDE + block_column])) : not_a_number();
}

bool find(uint out_at, out uint start, out uint beyond) {
    start = offsets[out_at / SIDE];
    beyond = offsets[out_at / SIDE + 1u];
    return list_is_whole(start, beyond, count, longest);
}

T run_of(uint out_at, uint run) {
    uint start, beyond;
    if (!find(out_at, start, beyond)) {
        return T(0);
    }
    block_column = out_at % SIDE;
    uint from = min(start * SIDE + run * RUN, beyond * SIDE);
    return run_sum(0u, from, min(from + RUN, beyond * SIDE));
}

T activated(uint out_at, T total) {
    uint start, beyond;
    T made = find(out_at, start, beyond) ? canon(total) : not_a_number();
    return apply_psi(PSI, made + canon(b[out_at]), alpha, low, high);
}
