// A ternary field on a periodic grid of h rows of w sites (one row: a ring), four sites to a word, any w.
// Needs the buffer s of words and the push constants h and w.
#include "trits.glsl"

int trit_at(uint row, uint column) {
    uint site = row * w + column;
    uint byte = s[site / 4u] >> (8u * (site % 4u));
    return int(byte & 1u) - 2 * int((byte >> 1) & byte & 1u);
}

// The coordinate `reach` steps back, round the end as often as need be.
uint stepped_back(uint at, uint reach, uint length) {
    return (at + length - reach % length) % length;
}

uint stepped_on(uint at, uint length) {
    return at + 1u == length ? 0u : at + 1u;
}

// A trit as a byte at its place in the word of its site.
uint placed(int trit, uint site) {
    return (uint(trit) & 0xffu) << (8u * (site % 4u));
}
