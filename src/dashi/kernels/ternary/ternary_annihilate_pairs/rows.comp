// In every byte bit 0 says that there is a +1, bit 1 that there is a -1.
#include "trits.glsl"

uint lifted(uint bytes) {
    uint minus = trits_minus(bytes);
    return trits_support(bytes) + minus;
}

uint joined(uint a, uint b, uint c) {
    return a | b | c;
}

uint decided(uint box, uint own) {
    uint keep = ~(box & box >> 1) & ONES;
    return (own & keep) | ((own >> 1) & keep) * 255u;
}

#include "rows3.glsl"
