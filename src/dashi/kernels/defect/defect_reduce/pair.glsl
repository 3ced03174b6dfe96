// The largest defect, as an integer key (a NaN has the highest), and the sum of them.
#include "keys.glsl"

struct Pair {
    KEY most;
    T total;
};

#define ACC Pair
#define SPREAD(v, k) Pair(SPREAD_KEY(v.most, k), subgroupQuadBroadcast(v.total, k))

ACC none() {
    return Pair(key_of(T(0)), T(0));
}

ACC join(ACC a, ACC b) {
    return Pair(b.most > a.most ? b.most : a.most, a.total + b.total);
}

// No addend is negative, so that canon changes no sum except a NaN.
void store(uint i, ACC v) {
    result[2u * i] = VALUE_OF(v.most);
    result[2u * i + 1u] = canon(v.total);
}
