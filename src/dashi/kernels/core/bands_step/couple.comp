// Second pass: coupling across bands.
T gain_value(uint item) {
    return gain[item];
}

#include "band_coupling.glsl"

T product(uint list_kind, uint e) {
    return coupling_product(e);
}

void main() {
    for (uint i = first_item + gl_GlobalInvocationID.x; i < items; i += stride) {
        result[i] = coupled_at(i, spread[i]);
    }
}
