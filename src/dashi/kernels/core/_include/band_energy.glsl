// The energy of a band of a state, the sum of squares of its components in the order tree64, by a whole workgroup. A
// band that leaves the state, or ends before it begins, has none. Needs the buffers edges and energies, the push
// constants bands and width, and in the kernel's file addend(SQUARES, i): component origin + band_start + i, squared.
const uint SQUARES = 0u;

uint origin;  // of the state
uint band_start;

#include "group_sum64.glsl"

#include "not_a_number.glsl"

void band_energy(uint state, uint band) {
    band_start = edges[band];
    uint beyond = edges[band + 1u];
    bool good = band_start <= beyond && beyond <= width;
    origin = state * width;
    T energy = group_sum64(SQUARES, good ? beyond - band_start : 0u);
    if (gl_LocalInvocationIndex == 0u) {
        energies[state * bands + band] = good ? canon(energy) : not_a_number();
    }
}
