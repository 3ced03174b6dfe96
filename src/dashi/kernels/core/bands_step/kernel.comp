// First pass: diffusion, and what each band drives the others by.
#include "psi.glsl"

uint origin;  // of the state

T energy_value(uint item) {
    return canon(energy[origin + item]);
}

#include "band_diffusion.glsl"

T product(uint list_kind, uint e) {
    return diffusion_product(e);
}

void main() {
    for (uint i = first_item + gl_GlobalInvocationID.x; i < items; i += stride) {
        origin = i / (nodes * bands) * (nodes * bands);
        T diffused = diffused_at(i - origin);
        spread[i] = diffused;
        gain[i] = gain_at(i - origin, diffused);
    }
}
