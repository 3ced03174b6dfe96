// One workgroup: the nearest of the candidates, any number of them, by the distances of their items.
#include "best.glsl"

void main() {
    KEY best = KEY(0);
    uint place = 0xffffffffu;
    for (uint i = gl_LocalInvocationIndex; i < many; i += MEMBERS) {
        uint item = candidates[i];
        if (item < items) {
            KEY key = nearness(distances[item]);
            if (nearer(key, item, best, place)) {
                best = key;
                place = item;
            }
        }
    }
    uint found = nearest_of(best, place);
    if (gl_LocalInvocationIndex == 0u) {
        nearest[0] = found;
    }
}
