// A workgroup takes a band of a state, or, after the last band, the whole state: item = state * (bands + 1) + band.
#include "keys.glsl"
#include "band_energy.glsl"

const uint SIZES = 1u;

shared KEY tops[LANES];

T addend(uint what, uint i) {
    T v = canon(z[origin + band_start + i]);
    return what == SQUARES ? mul(v, v) : canon(abs(v));
}

T largest() {
    uint me = gl_LocalInvocationIndex;
    KEY top = KEY(0);
    for (uint i = me; i < width; i += LANES) {
        KEY key = key_of(addend(SIZES, i));
        top = key > top ? key : top;
    }
    tops[me] = top;
    barrier();
    for (uint other = 0u; me == 0u && other < LANES; other++) {
        top = tops[other] > top ? tops[other] : top;
    }
    barrier();
    return top == KEY(0) ? T(0) : VALUE_OF(top);
}

void whole_state(uint state) {
    origin = state * width;
    band_start = 0u;
    T squares = group_sum64(SQUARES, width);
    T sizes = group_sum64(SIZES, width);
    T most = largest();
    if (gl_LocalInvocationIndex == 0u) {
        features[4u * state] = p_sqrt(squares);
        features[4u * state + 1u] = canon(sizes);
        features[4u * state + 2u] = most;
    }
}

// The whole workgroup agrees on the item, so it also agrees on the barriers.
void main() {
    for (uint item = first_item + gl_WorkGroupID.x; item < items; item += stride) {
        uint state = item / (bands + 1u);
        uint band = item % (bands + 1u);
        if (band < bands) {
            band_energy(state, band);
        } else {
            whole_state(state);
        }
    }
}
