// The nearest item of a workgroup: the largest key, then the lowest place, whatever the order of comparing.
#if T_IS_F64
#define KEY uint64_t
#else
#define KEY uint
#endif

const uint MEMBERS = 256u;
shared KEY keys[MEMBERS];
shared uint places[MEMBERS];

// The order of the distances turned round; a NaN is nearest of all.
KEY nearness(T distance) {
    return is_nan_bits(distance) ? ~KEY(0) : ~order_key(distance);
}

bool nearer(KEY key, uint place, KEY than_key, uint than_place) {
    return key > than_key || (key == than_key && place < than_place);
}

// All invocations call it together.
uint nearest_of(KEY key, uint place) {
    uint me = gl_LocalInvocationIndex;
    keys[me] = key;
    places[me] = place;
    barrier();
    for (uint reach = MEMBERS / 2u; reach > 0u; reach >>= 1) {
        if (me < reach && nearer(keys[me + reach], places[me + reach], keys[me], places[me])) {
            keys[me] = keys[me + reach];
            places[me] = places[me + reach];
        }
        barrier();
    }
    return places[0];
}
