// What is kept of any number of values before and after: four sums in the order tree64, four extremes as keys, and the
// values after that are not finite. Written as eight numbers and two words per tile, and at the end as the result, with
// TIMED also how many those are, and the time t + dt. kernels/measures.py plans the passes.
#include "keys.glsl"

const uint NONE = 0xffffffffu;

struct Measures {
    T sums[4];    // squares before, squares after, squares of the difference, values after
    KEY tops[4];  // largest magnitude, largest change, minus the smallest value, largest value
    uint odd;     // how many are not finite
    uint first;   // the first of them
};

#define ACC Measures

ACC none() {
    return Measures(T[4](T(0), T(0), T(0), T(0)), KEY[4](KEY(0), KEY(0), KEY(0), KEY(0)), 0u, NONE);
}

KEY above(KEY a, KEY b) {
    return b > a ? b : a;
}

ACC join(ACC a, ACC b) {
    for (uint q = 0u; q < 4u; q++) {
        a.sums[q] += b.sums[q];
        a.tops[q] = above(a.tops[q], b.tops[q]);
    }
    a.odd += b.odd;
    a.first = min(a.first, b.first);
    return a;
}

// No values at all have the extreme 0. A NaN among them has the highest key, and is every extreme.
T extreme(KEY key) {
    return key == KEY(0) ? T(0) : VALUE_OF(key);
}

void finish(ACC v) {
    T size = p_sqrt(v.sums[0]);
    T size_after = p_sqrt(v.sums[1]);
    bool nothing = key_of(size) == key_of(T(0)) && key_of(size_after) == key_of(T(0));
    metrics[0] = size;
    metrics[1] = size_after;
    metrics[2] = nothing ? T(0) : p_divide(size_after, size);
    metrics[3] = extreme(v.tops[0]);
    metrics[4] = extreme(v.tops[1]);
    metrics[5] = p_sqrt(v.sums[2]);
    metrics[6] = canon(v.sums[3]);
    metrics[7] = canon(v.sums[1]);
    metrics[8] = canon(-extreme(v.tops[2]));
    metrics[9] = extreme(v.tops[3]);
    for (uint i = 10u; i < 16u; i++) {
        metrics[i] = T(0);
    }
#ifdef TIMED
    // Every whole number up to 2^24 is a float.
    metrics[10] = T(min(v.odd, 1u << 24u));
    metrics[11] = canon(canon(t) + canon(dt));
#endif
    counts[0] = v.odd;
    counts[1] = v.first;
    counts[2] = v.first == NONE ? NONE : 0u;
    counts[3] = 0u;
}

// The keys of a tile go as values: all are canonical.
void store(uint tile, ACC v) {
    if (last != 0u) {
        finish(v);
        return;
    }
    for (uint q = 0u; q < 4u; q++) {
        metrics[8u * tile + q] = v.sums[q];
        metrics[8u * tile + 4u + q] = VALUE_OF(v.tops[q]);
    }
    counts[2u * tile] = v.odd;
    counts[2u * tile + 1u] = v.first;
}
