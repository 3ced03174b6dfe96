// Each workgroup takes `share` superblocks in a row: the ranks that they start from, and their bits of the sign plane.
// It adds all the counts before them itself: they are few, and a pass of its own would cost more. Words of the sign
// plane that superblocks share take bits from each of them, in any order, and were cleared before; the rest have one
// owner.
#include "planes.glsl"

const uint MEMBERS = 256u;
const uint SUMS = 16u;
shared uvec4 counted[MEMBERS / 4u];
shared uint sums[SUMS];

uint count_of(uint index, uint end) {
    return index < end ? counts[index] : 0u;
}

// Supported sites before a superblock. All invocations call it together.
uint start_of(uint end) {
    uint me = gl_LocalInvocationIndex;
    uint own = 0u;
    for (uint i = me; i < end; i += 4u * MEMBERS) {
        own += counts[i] + count_of(i + MEMBERS, end);
        own += count_of(i + 2u * MEMBERS, end) + count_of(i + 3u * MEMBERS, end);
    }
    counted[me / 4u][me % 4u] = own;
    barrier();
    if (me < SUMS) {
        uvec4 four = counted[4u * me] + counted[4u * me + 1u] + counted[4u * me + 2u] + counted[4u * me + 3u];
        sums[me] = four.x + four.y + four.z + four.w;
    }
    barrier();
    uint start = 0u;
    [[unroll]] for (uint i = 0u; i < SUMS; i++) {
        start += sums[i];
    }
    return start;
}

void place(uint index, uint start, uint count) {
    uint apart = start & 31u;
    uint source = index * SUPER_WORDS;
    for (uint at = gl_LocalInvocationIndex; count != 0u && at * 32u < apart + count; at += MEMBERS) {
        uint bits = at * 32u < count ? dense[source + at] << apart : 0u;
        if (at != 0u && apart != 0u) {
            bits |= dense[source + at - 1u] >> (32u - apart);
        }
        uint word = (start >> 5) + at;
        bool shares = (at == 0u && apart != 0u) || at * 32u + 32u > apart + count;
        if (shares) {
            atomicOr(signs[word], bits);
        } else {
            signs[word] = bits;
        }
    }
}

void main() {
    uint first = gl_WorkGroupID.x * share;
    uint end = min(first + share, many);
    uint start = start_of(first);
    for (uint index = first; index < end; index++) {
        uint own = counts[index];
        if (gl_LocalInvocationIndex == 0u) {
            supers[index] = start;
        }
        place(index, start, own);
        start += own;
    }
    if (gl_LocalInvocationIndex == 0u && end == many) {
        count[0] = start;
    }
}
