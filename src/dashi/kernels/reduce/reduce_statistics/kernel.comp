#include "stats.glsl"

TV bring(uint j) {
    return OVER(TV, canon, values_of(x[j]));
}

ACC take(T value, uint i) {
    KEY key = key_of(value);
    return Stats(key, key, value, mul(value, value));
}

#define EV TV
#include "reduce64.glsl"
