// A workgroup sums one shell of one member in the order tree64.
#include "not_a_number.glsl"

uint member;
uint first;

T addend(uint item, uint i) {
    uint e = first + i;
    uint place = places[e];
    if (place >= plane) {
        return not_a_number();
    }
    P a = x[member * plane + place];
    P b = y[member * plane + place];
    return mul(canon(weights[e]), mul(canon(a.x), canon(b.x)) + mul(canon(a.y), canon(b.y)));
}

#include "group_sum64.glsl"

void main() {
    for (uint item = gl_WorkGroupID.x; item < total; item += stride) {
        member = item / shells;
        first = offsets[item % shells];
        uint beyond = offsets[item % shells + 1u];
        bool whole = first <= beyond && beyond <= entries && beyond - first <= longest;
        T sum = group_sum64(0u, whole ? beyond - first : 0u);
        if (gl_LocalInvocationIndex == 0u) {
            result[item] = whole ? canon(sum) : not_a_number();
        }
    }
}
