#define FINISH p_sqrt
#include "sum64.glsl"

T squared(T value) {
    T size = flushed(value);
    return mul(size, size);
}

TV bring(uint j) {
    return OVER(TV, squared, values_of(x[j]));
}

#define EV TV
#include "reduce64.glsl"
