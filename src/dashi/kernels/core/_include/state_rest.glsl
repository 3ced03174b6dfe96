// Later passes: the measures of the tiles before.
#include "state_measures.glsl"

ACC load(uint i) {
    ACC v = none();
    for (uint q = 0u; q < 4u; q++) {
        v.sums[q] = partial[8u * i + q];
        v.tops[q] = key_of(partial[8u * i + 4u + q]);
    }
    v.odd = found[2u * i];
    v.first = found[2u * i + 1u];
    return v;
}

#include "rest64.glsl"
