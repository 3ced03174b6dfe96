// The largest of SIGNED(value), for rest64.glsl: SIGNED is nothing for a maximum, - for a minimum.
// Keys are compared, not floats: the order is then total, and the same on every device.
#include "keys.glsl"
#define ACC KEY

// Below the key of every value, -infinity too.
ACC none() {
    return KEY(0);
}

KEY signed_key(T value) {
    return order_key(SIGNED(value));
}

ACC join(ACC a, ACC b) {
    return b > a ? b : a;
}

void store(uint i, ACC v) {
    result[i] = canon(SIGNED(VALUE_OF(v)));
}
