// A change added to a state so that no part of it is lost in the long run: see `_increments.py`, which has the same bits.
#ifndef INCREMENTS_GLSL
#define INCREMENTS_GLSL
#include "portable.glsl"

#if !T_IS_F64
const float INCREMENT_TICK = 8.673617379884035e-19;  // 2^-60
const float INCREMENT_MOST = 7.275957614183426e-12;  // 2^-37

// The part of a last digit that is added at this time, -1/2 to 1/2. What a clock shows is told by its bits.
float last_digits(float clock) {
    uint bits = floatBitsToUint(clock);
    uint ticks = bits < 0x2d800000u ? uint(clock * 1.152921504606847e18) : 0u;  // below 2^-36
    uint steps = bits < 0x3f800000u ? ticks : bits < 0x4b800000u ? uint(clock) : 0u;
    return float(int(steps * 0x9e3779b9u) >> 8) * 5.9604644775390625e-08;
}

float incremented(float state, float change, float part) {
    uint bits = floatBitsToUint(state);
    float digit = mul(mul(uintBitsToFloat(bits & 0x7f800000u), 1.1920928955078125e-07), part);
    bool changes = (floatBitsToUint(change) & 0x7fffffffu) != 0u;
    float spread = (bits & 0x80000000u) != 0u ? -digit : digit;
    return state + (changes ? change + spread : change);
}

float ticked(float clock) {
    uint bits = floatBitsToUint(clock);
    bool there = (bits & 0x80000000u) == 0u && bits >= 0x2d000000u;  // 2^-37
    return !there ? clock + INCREMENT_TICK : bits < 0x3f800000u ? 0.0 : clock;
}
#else
double last_digits(double clock) {
    return 0.0lf;
}

double incremented(double state, double change, double part) {
    return state + change;
}

double ticked(double clock) {
    return clock;
}
#endif
#endif
