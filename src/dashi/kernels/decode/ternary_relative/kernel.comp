// A workgroup joins what was found of its member, then decides its words of four sites.
#include "relative.glsl"

uint trit(T value, KEY least) {
    T v = canon(value);
    KEY size = size_key(v);
    bool held = size > key_of(T(0)) && size >= least && size <= TOP && least <= TOP;
    return held ? (v < T(0) ? 0xffu : 1u) : 0u;
}

void main() {
    uint lane = gl_LocalInvocationIndex;
    for (uint item = gl_WorkGroupID.x; item < total; item += stride) {
        uint member = item / tiles;
        T peak = canon(VALUE_OF(joined(lane < parts ? key_of(canon(found[member * parts + lane])) : key_of(T(0)))));
        KEY least = key_of(canon(mul(canon(tau), canon(peak + canon(eps)))));
        if (lane == 0u && item % tiles == 0u) {
            peaks[member] = peak;
        }
        for (uint word = item % tiles * LANES + lane; 4u * word < plane; word += tiles * LANES) {
            uint made = 0u;
            for (uint site = 4u * word; site < min(4u * word + 4u, plane); site++) {
                made |= trit(x[member * plane + site], least) << (8u * (site % 4u));
            }
            result[member * (plane / 4u) + word] = made;
        }
        barrier();
    }
}
