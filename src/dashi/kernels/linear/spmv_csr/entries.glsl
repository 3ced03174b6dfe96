// The entries of row r are values[e] in columns[e] for e from offsets[r] to offsets[r + 1]. A row that is longer than
// declared, or that leaves the lists, has no sum; nor has one with a column past the end of x: both give NaN.
const uint RUN = 64u;
const uint TILE = 4096u;

#include "not_a_number.glsl"

bool find_row(uint r, out uint start, out uint beyond) {
    start = offsets[r];
    beyond = offsets[r + 1u];
    return start <= beyond && beyond <= entries && beyond - start <= longest;
}

T product_of(uint from, T value, T factor) {
    return from < n ? mul(canon(value), canon(factor)) : not_a_number();
}

// Even an empty x has memory behind it.
T product(uint e) {
    uint from = columns[e];
    return product_of(from, values[e], x[from < n ? from : 0u]);
}

// Three levels of tree64 while the entries of a row come in order.
struct Sum {
    T run;
    T tile;
    T total;
};

// Adds the entry that is number `place` of its row.
void add(inout Sum s, uint place, T value) {
    s.run += value;
    if (place % RUN == RUN - 1u) {
        s.tile += s.run;
        s.run = T(0);
        if (place % TILE == TILE - 1u) {
            s.total += s.tile;
            s.tile = T(0);
        }
    }
}

T whole(Sum s) {
    return canon(s.total + (s.tile + s.run));
}

T direct_sum(uint start, uint beyond) {
    Sum s = Sum(T(0), T(0), T(0));
    for (uint e = start; e < beyond; e++) {
        add(s, e - start, product(e));
    }
    return whole(s);
}
