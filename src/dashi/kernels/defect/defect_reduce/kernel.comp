#include "pair.glsl"

TV bring(uint j) {
    TV before = OVER(TV, canon, values_of(a[j]));
    TV after = OVER(TV, canon, values_of(b[j]));
    TV change = abs(after - before);
    return OVER(TV, canon, change);
}

ACC take(T defect, uint i) {
    return Pair(key_of(defect), defect);
}

#define EV TV
#include "reduce64.glsl"
