#include "best.glsl"

ACC load(uint i) {
    return Best(order_key(x[i]), origin[i]);
}

#include "reduce64.glsl"
