// Where the largest of SIGNED(value) is, for stream64.glsl and rest64.glsl: SIGNED is nothing for a maximum, - for a
// minimum. The first of equals wins, in whatever order they come.
#include "keys.glsl"

struct Best {
    KEY key;
    uint place;
};

#define ACC Best
#define AHEAD 4u  // with 8, SwiftShader's compiler does not come to an end

// Below the key of every value, -infinity too.
ACC none() {
    return Best(KEY(0), 0u);
}

KEY signed_key(T value) {
    return order_key(SIGNED(value));
}

ACC join(ACC a, ACC b) {
    bool better = b.key > a.key || (b.key == a.key && b.place < a.place);
    return Best(better ? b.key : a.key, better ? b.place : a.place);
}

#ifdef ELEMS
// Elements that come after all that total has seen. A better one is rare: the whole vector is asked first.
ACC join_words(ACC total, uvec4 words, uint i) {
    KEYS keys = OVER(KEYS, signed_key, values_of(words));
#if T_IS_F64
    KEY top = max(keys.x, keys.y);
    uint at = keys.x == top ? 0u : 1u;
#else
    KEY top = max(max(keys.x, keys.y), max(keys.z, keys.w));
    uint at = keys.x == top ? 0u : keys.y == top ? 1u : keys.z == top ? 2u : 3u;
#endif
    if (top > total.key) {
        total = Best(top, i + at);
    }
    return total;
}

ACC join_end(ACC total, uvec4 words, uint i) {
    TV values = values_of(words);
    for (uint c = 0u; c < ELEMS && i + c < n; c++) {
        total = join(total, Best(signed_key(values[c]), i + c));
    }
    return total;
}
#endif

void store(uint i, ACC v) {
    values[i] = canon(SIGNED(VALUE_OF(v.key)));
    places[i] = v.place;
}
