// The band energies of the states after the step, a workgroup for each band of each state.
#include "band_energy.glsl"

T addend(uint what, uint i) {
    T v = canon(z[origin + band_start + i]);
    return mul(v, v);
}

// The whole workgroup agrees on the item, so it also agrees on the barriers.
void main() {
    for (uint item = first_item + gl_WorkGroupID.x; item < items; item += stride) {
        band_energy(item / bands, item % bands);
    }
}
