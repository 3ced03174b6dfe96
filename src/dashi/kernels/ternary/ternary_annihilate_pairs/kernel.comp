// Each site looks for both signs in its box.
#include "torus.glsl"

bool both_signs(uint row, uint column) {
    bool plus = false;
    bool minus = false;
    uint y = stepped_back(row, rise, h);
    for (uint dy = 0u; dy <= 2u * rise; dy++) {
        uint x = stepped_back(column, radius, w);
        for (uint dx = 0u; dx <= 2u * radius; dx++) {
            int trit = trit_at(y, x);
            plus = plus || trit > 0;
            minus = minus || trit < 0;
            x = stepped_on(x, w);
        }
        y = stepped_on(y, h);
    }
    return plus && minus;
}

int survivor(uint row, uint column) {
    int own = trit_at(row, column);
    if (own == 0) {
        return 0;
    }
    return both_signs(row, column) ? 0 : own;
}

void main() {
    for (uint item = gl_GlobalInvocationID.x; item < items; item += stride) {
        uint word = 0u;
        for (uint site = 4u * item; site < 4u * item + 4u && site < h * w; site++) {
            word |= placed(survivor(site / w, site % w), site);
        }
        result[item] = word;
    }
}
