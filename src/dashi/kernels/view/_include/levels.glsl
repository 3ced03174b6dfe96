// A value as one of 256 levels: 0 at lo and below, 255 at hi and above. The twin is kernels/pixels.py.
// Needs the push constants lo and scale = 255 / (hi - lo), both canonical.

const uint NAN_PIXEL = 0xffff00ffu;  // magenta: no grey, and in no usual table
const uint OPAQUE = 0xff000000u;

// The whole part of t, limited to 0..255. Limited by the bits: those of positive floats have the order of the values.
uint whole_level(float t) {
    int bits = clamp(floatBitsToInt(t), 0, 0x437f0000);
    return uint(intBitsToFloat(bits));
}

#if USE_F64
uint whole_level(double t) {
    int high = int(unpackDouble2x32(t).y);
    double inside = high < 0x406fe000 ? t : 255.0lf;
    return uint(high < 0 ? 0.0lf : inside);
}
#endif

// v is canonical and not NaN.
uint level(T v) {
    return whole_level(mul(v - lo, scale) + T(0.5));
}
