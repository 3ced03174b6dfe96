#include "channels.glsl"

uint pixel(uint i) {
    return diff(a[i], b[i]);
}
