#include "colour.glsl"

uint pixel(uint i) {
    return shown(field[i]);
}
