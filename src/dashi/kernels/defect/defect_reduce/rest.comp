// Later passes: the pairs of the tiles before.
#include "pair.glsl"

ACC load(uint i) {
    return Pair(key_of(partial[2u * i]), partial[2u * i + 1u]);
}

#include "rest64.glsl"
