#define SIGNED(v) (-(v))
#include "extreme64.glsl"

KEYS bring(uint j) {
    return OVER(KEYS, signed_key, values_of(x[j]));
}

#define EV KEYS
#include "reduce64.glsl"
