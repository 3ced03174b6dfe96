#include "pair.glsl"

ACC load(uint i) {
    T defect = canon(abs(canon(b[i]) - canon(a[i])));
    return Pair(order_key(defect), defect);
}

#include "reduce64.glsl"
