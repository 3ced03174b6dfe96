// The counts of one digit become what the blocks before have of it; their sum goes to totals.
#include "workgroup_scan.glsl"

void main() {
    uint digit = gl_WorkGroupID.y;
    uint begin = digit * blocks + min(gl_LocalInvocationIndex * share, blocks);
    uint end = digit * blocks + min((gl_LocalInvocationIndex + 1u) * share, blocks);
    uint sum = 0u;
    for (uint i = begin; i < end; i++) {
        sum += counts[i];
    }
    uint total;
    uint before = exclusive_scan(sum, total);
    for (uint i = begin; i < end; i++) {
        uint count = counts[i];
        counts[i] = before;
        before += count;
    }
    if (gl_LocalInvocationIndex == 0u) {
        totals[digit] = total;
    }
}
