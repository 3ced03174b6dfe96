#include "planes.glsl"
#include "counts.glsl"

void main() {
    uint own = 0u;
    for (uint word = gl_GlobalInvocationID.x; word < items; word += stride) {
        own += uint(bitCount(support[word] & sites_below(word, n)));
    }
    uint total = count_together(own);
    if (gl_LocalInvocationIndex == 0u) {
        sums[gl_WorkGroupID.x] = total;
    }
}
