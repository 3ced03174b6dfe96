#include "stats.glsl"

ACC load(uint i) {
    uint at = 4u * i;
    return Stats(key_of(partial[at]), key_of(partial[at + 1u]), partial[at + 2u], partial[at + 3u]);
}

#include "rest64.glsl"
