// Any radius and any width: each site adds up its box.
#include "torus.glsl"

int box_sum(uint row, uint column) {
    int sum = 0;
    uint y = stepped_back(row, rise, h);
    for (uint dy = 0u; dy <= 2u * rise; dy++) {
        uint x = stepped_back(column, radius, w);
        for (uint dx = 0u; dx <= 2u * radius; dx++) {
            sum += trit_at(y, x);
            x = stepped_on(x, w);
        }
        y = stepped_on(y, h);
    }
    return sum;
}

int vote(uint row, uint column) {
    int own = trit_at(row, column);
    int sum = box_sum(row, column) + (centre - 1) * own;
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
