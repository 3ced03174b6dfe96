// The smallest and largest value, as keys, the sum and the sum of squares, for reduce64.glsl and rest64.glsl.
#include "keys.glsl"

struct Stats {
    KEY least;
    KEY most;
    T total;
    T squares;
};

#define ACC Stats
#define SPREAD(v, k)                                                                                       \
    Stats(SPREAD_KEY(v.least, k), SPREAD_KEY(v.most, k), subgroupQuadBroadcast(v.total, k),                \
          subgroupQuadBroadcast(v.squares, k))

// Above and below the key of every value.
ACC none() {
    return Stats(~KEY(0), KEY(0), T(0), T(0));
}

ACC join(ACC a, ACC b) {
    KEY least = b.least < a.least ? b.least : a.least;
    KEY most = b.most > a.most ? b.most : a.most;
    return Stats(least, most, a.total + b.total, a.squares + b.squares);
}

// A NaN has the highest key: it shows in `most`, and the smallest value is then NaN too.
void store(uint i, ACC v) {
    T most = VALUE_OF(v.most);
    result[4u * i] = is_nan_bits(most) ? most : VALUE_OF(v.least);
    result[4u * i + 1u] = most;
    result[4u * i + 2u] = last != 0u ? canon(v.total) : v.total;
    result[4u * i + 3u] = last != 0u ? canon(v.squares) : v.squares;
}
