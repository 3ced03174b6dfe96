#include "torus.glsl"

// The trit of a site whose strength reaches theta, else 0.
int strong_trit(uint y, uint x) {
    int own = trit_at(y, x);
    if (own == 0) {
        return 0;
    }
    T value = canon(strength[y * w + x]);
    bool strong = !is_nan_bits(value) && !is_nan_bits(canon(theta)) && value >= canon(theta);
    return strong ? own : 0;
}

bool clashes(uint y, uint x) {
    int own = strong_trit(y, x);
    if (own == 0) {
        return false;
    }
    for (uint k = 0u; k < 9u; k++) {
        uint up = k / 3u;
        uint right = k % 3u;
        bool corner = up != 1u && right != 1u;
        if (k != 4u && !(corner && head_on != 0u)) {
            uint there = (y + h + up - 1u) % h;
            uint beside = (x + w + right - 1u) % w;
            if (own * strong_trit(there, beside) < 0) {
                return true;
            }
        }
    }
    return false;
}

void main() {
    for (uint item = gl_GlobalInvocationID.x; item < items; item += stride) {
        uint word = 0u;
        for (uint site = 4u * item; site < 4u * item + 4u && site < h * w; site++) {
            word |= placed(clashes(site / w, site % w) ? 0 : trit_at(site / w, site % w), site);
        }
        result[item] = word;
    }
}
