// The totals of tiles of 64 x 64: what the tiles after them start from.
#include "addends.glsl"
#define ACC T
#define SPREAD(v, k) subgroupQuadBroadcast(v, k)

ACC none() {
    return T(0);
}

ACC take(T value, uint i) {
    return value;
}

ACC join(ACC a, ACC b) {
    return a + b;
}

void store(uint i, ACC v) {
    totals[i] = v;
}

#include "reduce64.glsl"
