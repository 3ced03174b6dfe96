// The sign plane: the bits of each superblock go to their rank. Words that it shares with others take bits from each
// of them, in any order, and were cleared before; the rest are its own.
#include "planes.glsl"

void place(uint index) {
    uint start = supers[index];
    uint count = counts[index];
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
    for (uint index = gl_WorkGroupID.x; index < many; index += stride) {
        place(index);
    }
}
