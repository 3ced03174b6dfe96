// Each invocation reads the values of its own run: for devices with caches and few lanes.
#include "state_values.glsl"

ACC load(uint i) {
    T here = canon(before[i]);
    T there = canon(after[i]);
    ACC v = none();
    take_extremes(v, here, there, i);
    for (uint q = 0u; q < 4u; q++) {
        v.sums[q] = addend(q, here, there);
    }
    return v;
}

#include "rest64.glsl"
