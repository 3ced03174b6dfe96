// Trits are raised to 0, 1, 2, so that bytes add without borrowing: a box sums to at most 2 (8 + centre), and centre is
// at most 32 here.
#include "trits.glsl"

uint lifted(uint bytes) {
    return ONES + trits_support(bytes) - 2u * trits_minus(bytes);
}

uint joined(uint a, uint b, uint c) {
    return a + b + c;
}

uint decided(uint box, uint own) {
    uint total = box + extra * own;
    uint keep = grow != 0u ? ONES : ONES & ~own;
    uint plus = ((total + above) >> 7) & keep;
    uint minus = (~(total + under) >> 7) & keep;
    return plus | minus * 255u;
}

#include "rows3.glsl"
