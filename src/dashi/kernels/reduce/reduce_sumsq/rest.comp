#include "sum64.glsl"

ACC load(uint i) {
    return partial[i];
}

#include "rest64.glsl"
