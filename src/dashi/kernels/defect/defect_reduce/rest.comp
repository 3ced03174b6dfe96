// Later passes: the pairs of the tiles before.
#include "pair.glsl"

ACC load(uint i) {
    return Pair(order_key(pairs[2u * i]), pairs[2u * i + 1u]);
}

#include "reduce64.glsl"
