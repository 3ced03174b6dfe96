// The totals of tiles of 64 x 64: what the tiles after them start from.
#include "addend.glsl"

void store(uint i, ACC v) {
    totals[i] = v;
}

#include "reduce64.glsl"
