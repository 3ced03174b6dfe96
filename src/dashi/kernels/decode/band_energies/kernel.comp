// A workgroup sums one tile of 64 x 64 modes of one member, weighted for one band.
#include "band_sums.glsl"

uint from;
uint table;

T addend(uint i) {
    P a = x[from + i];
    return mul(canon(weights[table + i]), mul(canon(a.x), canon(a.x)) + mul(canon(a.y), canon(a.y)));
}

void main() {
    for (uint item = gl_WorkGroupID.x; item < total; item += stride) {
        from = item / (tiles * bands) * plane;
        table = item / tiles % bands * plane;
        T sum = tile_sum(item % tiles * RUN * RUN, plane);
        if (gl_LocalInvocationIndex == 0u) {
            result[item] = canon(sum);
        }
    }
}
