// A workgroup sums the tiles of one member and band.
#include "band_sums.glsl"

uint from;

T addend(uint i) {
    return canon(partial[from + i]);
}

void main() {
    for (uint item = gl_WorkGroupID.x; item < total; item += stride) {
        from = item * tiles;
        T sum = tile_sum(0u, tiles);
        if (gl_LocalInvocationIndex == 0u) {
            result[item] = canon(sum);
        }
    }
}
