#include "sum64.glsl"

// Runs are summed as they are: only what comes in and what goes out is made canonical.
TV bring(uint j) {
    return OVER(TV, flushed, values_of(x[j]));
}

#define EV TV
#include "reduce64.glsl"
