#include "best.glsl"

ACC load(uint i) {
    return Best(order_key(x[i]), i);
}

#include "reduce64.glsl"
