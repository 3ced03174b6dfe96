#include "sum64.glsl"

// Not made canonical first: what that would change has a square that is flushed, and NaN stays NaN.
T squared(T value) {
    return mul(value, value);
}

TV bring(uint j) {
    return OVER(TV, squared, values_of(x[j]));
}

#define EV TV
#include "reduce64.glsl"
