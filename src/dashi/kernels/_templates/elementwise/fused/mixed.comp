// One pass over arrays of any strides and any element types, as words of 32 bits: `bring` makes values of T of them,
// canonical, and `tail` makes words of the results. An invocation has four elements, in runs of PACK that lie behind one
// another, so that each word of small results is one invocation's: bring, apply and tail are replaced as in flat.comp.
#include "ops.glsl"
#include "scalars.glsl"
#include "storage.glsl"
#include "apply.glsl"

const uint ELEMENTS = 4u;

Values bring(Place at) {
    uint w = word0(index0(at));
    T total = T(0);
    if (n == 0u) {
        READ_EVERY
    }
    Values v = Values(EVERY_WORD(at));
    v.x0 += total;
    return v;
}

// Returned are the words of small elements so far, `before` is what was returned for the element before.
Words tail(uint i, Results results, Words before) {
    uint w = join_half(before.w0, i, i) + join_byte(before.w0, i, i);
    T v = results.y0;
    if (n == 0u) {
        WRITE_EVERY
    }
    before.w0 += w;
    return before;
}

uint element(uint start, uint q) {
    return start + (q / PACK * LOCAL + gl_LocalInvocationID.x) * PACK + q % PACK;
}

void main() {
    for (uint start = gl_WorkGroupID.x * LOCAL * ELEMENTS; start < n; start += stride) {
        Values values[ELEMENTS];
        [[unroll]] for (uint q = 0u; q < ELEMENTS; q++) {
            values[q] = bring(place_of(min(element(start, q), n - 1u)));
        }
        Words words = NO_WORDS;
        [[unroll]] for (uint q = 0u; q < ELEMENTS; q++) {
            Results results = apply(values[q]);
            if (element(start, q) < n) {
                words = tail(element(start, q), canonical(results), words);
            }
        }
    }
}
