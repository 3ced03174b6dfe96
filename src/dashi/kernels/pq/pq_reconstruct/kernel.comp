// The words of 8192 sites and their ranks come into shared memory; then the workgroup goes over the sites side by side.
#include "ranks.glsl"

shared uint masks[TILE];
shared uint starts[TILE];

// The sign comes from the sign plane alone, once: a magnitude's own does not count.
T value_at(uint rank) {
    T value = rank < m ? abs(canon(magnitudes[rank])) : T(0);
    uint at = rank >> 5;
    bool negative = at < words && ((signs[at] >> (rank & 31u)) & 1u) != 0u;
    return negative ? -value : value;
}

void write_sites(uint tile) {
    for (uint turn = 0u; turn < 32u; turn++) {
        uint local_site = turn * TILE + gl_LocalInvocationIndex;
        uint site = tile * TILE * 32u + local_site;
        uint mask = masks[local_site / 32u];
        uint bit = 1u << (local_site % 32u);
        T value = T(0);
        if ((mask & bit) != 0u) {
            value = value_at(starts[local_site / 32u] + uint(bitCount(mask & (bit - 1u))));
        }
        if (site < n) {
            result[site] = canon(value);
        }
    }
}

void main() {
    uint me = gl_LocalInvocationIndex;
    for (uint tile = gl_WorkGroupID.x; tile * TILE < words; tile += stride) {
        uint mask, rank;
        find_rank(tile * TILE + me, mask, rank);
        masks[me] = mask;
        starts[me] = rank;
        barrier();
        write_sites(tile);
        barrier();
    }
}
