// Where the largest of SIGNED(value) is, for reduce64.glsl and rest64.glsl: SIGNED is nothing for a maximum, - for a
// minimum. The first of equals stays, since elements are joined in index order.
#include "keys.glsl"

struct Best {
    KEY key;
    uint place;
};

#define ACC Best

// Below the key of every value, -infinity too.
ACC none() {
    return Best(KEY(0), 0u);
}

KEY signed_key(T value) {
    return order_key(SIGNED(value));
}

ACC take(KEY key, uint i) {
    return Best(key, i);
}

ACC join(ACC a, ACC b) {
    bool better = b.key > a.key;
    return Best(better ? b.key : a.key, better ? b.place : a.place);
}

void store(uint i, ACC v) {
    values[i] = canon(SIGNED(VALUE_OF(v.key)));
    places[i] = v.place;
}
