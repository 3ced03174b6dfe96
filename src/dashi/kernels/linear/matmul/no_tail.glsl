// A product is its own result.
#include "batch_place.glsl"

T finish(T value, Place at) {
    return value;
}
