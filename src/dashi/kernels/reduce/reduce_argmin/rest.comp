#define SIGNED(v) (-(v))
#include "best64.glsl"

ACC load(uint i) {
    return Best(signed_key(partial[i]), origin[i]);
}

#include "rest64.glsl"
