// Many steps of one state in one workgroup: energies, what diffusion makes of them, and gains lie in shared memory. Both
// halves of a step read what the other has written, so the energies need no second copy.
#include "psi.glsl"

shared T held[SIZE];
shared T spread[SIZE];
shared T gains[SIZE];

T energy_value(uint item) {
    return held[item];
}

T gain_value(uint item) {
    return gains[item];
}

#include "band_diffusion.glsl"
#include "band_coupling.glsl"

T product(uint list_kind, uint e) {
    if (list_kind == COUPLING) {
        return coupling_product(e);
    }
    return diffusion_product(e);
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    uint me = gl_LocalInvocationIndex;
    uint size = nodes * bands;
    uint base = (first_state + gl_WorkGroupID.x) * size;
    for (uint i = me; i < size; i += LOCAL) {
        held[i] = canon(energy[base + i]);
    }
    barrier();
    for (uint t = 0u; t < steps; t++) {
        for (uint i = me; i < size; i += LOCAL) {
            T diffused = diffused_at(i);
            spread[i] = diffused;
            gains[i] = gain_at(i, diffused);
        }
        barrier();
        for (uint i = me; i < size; i += LOCAL) {
            held[i] = coupled_at(i, spread[i]);
        }
        barrier();
    }
    for (uint i = me; i < size; i += LOCAL) {
        result[base + i] = held[i];
    }
}
