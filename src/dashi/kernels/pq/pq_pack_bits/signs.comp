// Each workgroup takes `share` superblocks in a row, four at once: the ranks that they start from, and their bits of
// the sign plane. It adds all the counts before them itself: they are few, and a pass of its own would cost more. Words
// of the sign plane that superblocks share take bits from each of them, in any order, and were cleared before; the rest
// have one owner. Signs are read before it is known how many they are, so that no load waits for another.
#include "planes.glsl"

const uint MEMBERS = 256u;
const uint SUMS = 16u;
const uint TOGETHER = 4u;  // superblocks
const uint EACH = SUPER_WORDS / MEMBERS;
shared uvec4 counted[MEMBERS / 4u];
shared uint sums[SUMS];

uvec4 counts_of(uint four, uint end) {
    return four < end ? counts[four] : uvec4(0u);
}

// Supported sites before a superblock, a multiple of four. All invocations call it together.
uint start_of(uint first) {
    uint me = gl_LocalInvocationIndex;
    uint end = first / 4u;
    uvec4 own = uvec4(0u);
    for (uint i = me; i < end; i += 4u * MEMBERS) {
        own += counts[i] + counts_of(i + MEMBERS, end);
        own += counts_of(i + 2u * MEMBERS, end) + counts_of(i + 3u * MEMBERS, end);
    }
    counted[me / 4u][me % 4u] = own.x + own.y + own.z + own.w;
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

// Counts of four superblocks; of those that do not exist, nothing.
uvec4 own_counts(uint first) {
    uvec4 own = counts[first / 4u];
    if (many - first < 4u) {
        own *= uvec4(lessThan(uvec4(first) + uvec4(0u, 1u, 2u, 3u), uvec4(many)));
    }
    return own;
}

// A word of the gathered signs and the one before; where they end, anything.
uvec2 read_pair(uint index, uint at) {
    uint word = min(index, many - 1u) * SUPER_WORDS + at;
    return uvec2(dense[word], dense[max(word, 1u) - 1u]);
}

void place(uint at, uvec2 pair, uint start, uint count) {
    uint apart = start & 31u;
    uint word = (start >> 5) + at;
    uint bits = at * 32u < count ? pair.x << apart : 0u;
    if (at != 0u) {
        bits |= (pair.y >> 1) >> (31u - apart);
    }
    if (count == 0u || at * 32u >= apart + count) {
        return;
    }
    if ((at == 0u && apart != 0u) || at * 32u + 32u > apart + count) {
        atomicOr(signs[word], bits);
    } else {
        signs[word] = bits;
    }
}

void main() {
    uint me = gl_LocalInvocationIndex;
    uint first = gl_WorkGroupID.x * share;
    uint end = min(first + share, many);
    uint start = 0u;
    for (uint index = first; index < end; index += TOGETHER) {
        uvec2 pairs[TOGETHER][EACH];
        [[unroll]] for (uint i = 0u; i < TOGETHER; i++) {
            [[unroll]] for (uint k = 0u; k < EACH; k++) {
                pairs[i][k] = read_pair(index + i, k * MEMBERS + me);
            }
        }
        uvec4 own = own_counts(index);
        if (index == first) {
            start = start_of(first);
        }
        [[unroll]] for (uint i = 0u; i < TOGETHER; i++) {
            [[unroll]] for (uint k = 0u; k < EACH; k++) {
                place(k * MEMBERS + me, pairs[i][k], start, own[i]);
            }
            // What the last word has left over, if it is full.
            if (me == MEMBERS - 1u) {
                place(SUPER_WORDS, uvec2(0u, pairs[i][EACH - 1u].x), start, own[i]);
            }
            if (me == i && index + i < many) {
                supers[index + i] = start;
            }
            start += own[i];
        }
    }
    if (me == 0u && end == many) {
        count[0] = start;
    }
}
