// Bilinear samples of a plane of h rows and w columns. The twin is kernels/bilinear.py.
// The file that includes this defines T texel(uint x, uint y), a canonical value, and has the push constants w and h
// and the specialisation constant BORDER.

const uint CLAMP = 0u;
const uint ZERO = 1u;
const uint WRAP = 2u;

// At 2^30 and beyond, infinities and NaN too: past every plane, and where a conversion to int would go wrong.
bool is_far(float u) {
    return (floatBitsToUint(u) & 0x7fffffffu) >= 0x4e800000u;
}

bool is_negative(float u) {
    return floatBitsToInt(u) < 0;
}

#if USE_F64
bool is_far(double u) {
    return (unpackDouble2x32(u).y & 0x7fffffffu) >= 0x41d00000u;
}

bool is_negative(double u) {
    return int(unpackDouble2x32(u).y) < 0;
}
#endif

#if T_IS_F64
#define NAN_VALUE packDouble2x32(uvec2(0u, F64_NAN_HIGH))
#else
#define NAN_VALUE uintBitsToFloat(F32_NAN)
#endif

// The two neighbours of a coordinate along one axis, the weight of the second, and which of them count.
struct Place {
    uint low;
    uint high;
    T weight;
    bool has_low;
    bool has_high;
    bool lost;
};

uint wrapped(int i, uint size) {
    // The remainder of a negative number is not defined in GLSL.
    return i >= 0 ? uint(i) % size : size - 1u - uint(-1 - i) % size;
}

Place place(T u, uint size) {
    bool beyond = is_far(u);
    T near = beyond ? (is_negative(u) ? T(-1073741824) : T(1073741824)) : u;
    int i = int(near);  // towards 0
    i -= T(i) > near ? 1 : 0;
    Place p;
    p.weight = near - T(i);
    p.lost = is_nan_bits(u);
    p.has_low = true;
    p.has_high = true;
    int last = int(size) - 1;
    if (BORDER == WRAP) {
        p.low = uint(i) < size ? uint(i) : wrapped(i, size);
        p.high = p.low == uint(last) ? 0u : p.low + 1u;
        p.lost = beyond;
    } else {
        p.low = uint(clamp(i, 0, last));
        p.high = uint(clamp(i + 1, 0, last));
        if (BORDER == ZERO) {
            p.has_low = uint(i) < size;
            p.has_high = uint(i + 1) < size;
        }
    }
    return p;
}

// p where the weight is 0, whatever q is; the same as p and q where they are equal.
T between(T p, T q, T weight) {
    return weight == T(0) ? p : p + mul(weight, q - p);
}

T bilinear(T u, T v) {
    Place x = place(u, w);
    Place y = place(v, h);
    T p00 = texel(x.low, y.low);
    T p01 = texel(x.high, y.low);
    T p10 = texel(x.low, y.high);
    T p11 = texel(x.high, y.high);
    if (BORDER == ZERO) {
        p00 = x.has_low && y.has_low ? p00 : T(0);
        p01 = x.has_high && y.has_low ? p01 : T(0);
        p10 = x.has_low && y.has_high ? p10 : T(0);
        p11 = x.has_high && y.has_high ? p11 : T(0);
    }
    T value = between(between(p00, p01, x.weight), between(p10, p11, x.weight), y.weight);
    return x.lost || y.lost ? NAN_VALUE : value;
}
