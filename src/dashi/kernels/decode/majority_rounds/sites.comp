// One round, or none, for rows that are no whole words: each site adds up its box.
#include "trits.glsl"

int trit_at(uint site) {
    uint byte = s[site / 4u] >> (8u * (site % 4u));
    return int(byte & 1u) - 2 * int((byte >> 1) & byte & 1u);
}

int vote(uint site) {
    int own = trit_at(site);
    if (own == 0 || turns == 0u) {
        return own;
    }
    uint plane = h * w;
    uint first = site / plane * plane;
    uint row = site % plane / w;
    uint column = site % w;
    int sum = 0;
    for (uint dy = 0u; dy < 3u; dy++) {
        for (uint dx = 0u; dx < 3u; dx++) {
            sum += trit_at(first + (row + h + dy - 1u) % h * w + (column + w + dx - 1u) % w);
        }
    }
    return sum >= eta ? 1 : (sum <= -eta ? -1 : 0);
}

void main() {
    for (uint item = gl_GlobalInvocationID.x; item < items; item += stride) {
        uint made = 0u;
        for (uint site = 4u * item; site < min(4u * item + 4u, sites); site++) {
            made |= (uint(vote(site)) & 0xffu) << (8u * (site % 4u));
        }
        result[item] = made;
    }
}
