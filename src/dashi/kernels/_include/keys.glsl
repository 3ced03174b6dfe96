// Values as integers with the same order (order_key), and back; SPREAD_KEY for reduce64.glsl.
#if T_IS_F64
#define KEY uint64_t
#define VALUE_OF order_value_f64
#define SPREAD_KEY(v, k) packUint2x32(subgroupQuadBroadcast(unpackUint2x32(v), k))
#else
#define KEY uint
#define VALUE_OF order_value_f32
#define SPREAD_KEY(v, k) subgroupQuadBroadcast(v, k)
#endif

// order_key of a value that is canonical already.
KEY key_of(T v) {
#if T_IS_F64
    KEY bits = doubleBitsToUint64(v);
    return (bits >> 63) != 0ul ? ~bits : bits | 0x8000000000000000ul;
#else
    KEY bits = floatBitsToUint(v);
    return (bits >> 31) != 0u ? ~bits : bits | 0x80000000u;
#endif
}
