// For 256 words of a support plane, one for each invocation: the word, and the rank of its first site.
// Needs the buffers support, blocks and supers, the push constants n and words, and a workgroup of 256.
#include "planes.glsl"

const uint TILE = 256u;
shared uint counted[2][TILE];

// All invocations call it together; words past the end are empty.
void find_rank(uint word, out uint mask, out uint rank) {
    uint me = gl_LocalInvocationIndex;
    mask = word < words ? support[word] & sites_below(word, n) : 0u;
    uint own = uint(bitCount(mask));
    counted[0][me] = own;
    barrier();
    uint from = 0u;
    for (uint reach = 1u; reach < BLOCK_WORDS; reach <<= 1) {
        uint sum = counted[from][me];
        if (me % BLOCK_WORDS >= reach) {
            sum += counted[from][me - reach];
        }
        from = 1u - from;
        counted[from][me] = sum;
        barrier();
    }
    rank = counted[from][me] - own;
    if (word < words) {
        rank += supers[word / SUPER_WORDS] + blocks[word / BLOCK_WORDS];
    }
}
