#define SIGNED(v) (v)
#include "extreme64.glsl"

ACC load(uint i) {
    return signed_key(partial[i]);
}

#include "rest64.glsl"
