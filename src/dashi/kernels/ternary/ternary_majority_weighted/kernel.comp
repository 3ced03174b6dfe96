// Each site adds up its neighbourhood with the weights given, in 32-bit integers.
#include "torus.glsl"

int weighted_sum(uint row, uint column) {
    int sum = 0;
    uint at = 0u;
    uint y = stepped_back(row, tall / 2u, h);
    for (uint dy = 0u; dy < tall; dy++) {
        uint x = stepped_back(column, wide / 2u, w);
        for (uint dx = 0u; dx < wide; dx++) {
            sum += weights[at] * trit_at(y, x);
            at++;
            x = stepped_on(x, w);
        }
        y = stepped_on(y, h);
    }
    return sum;
}

int vote(uint row, uint column) {
    int own = trit_at(row, column);
    int sum = weighted_sum(row, column);
    int chosen = sum >= eta ? 1 : (sum <= -eta ? -1 : 0);
    return own != 0 || grow != 0u ? chosen : 0;
}

void main() {
    for (uint item = gl_GlobalInvocationID.x; item < items; item += stride) {
        uint word = 0u;
        for (uint site = 4u * item; site < 4u * item + 4u && site < h * w; site++) {
            word |= placed(vote(site / w, site % w), site);
        }
        result[item] = word;
    }
}
