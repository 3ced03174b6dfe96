// A workgroup takes a state: the entropy -sum p log p of its bands' shares p = energy / sum of energies.
#include "keys.glsl"
#include "group_sum64.glsl"

const uint ENERGY = 0u;
const uint SURPRISE = 1u;

uint origin;
T total;

bool is_zero(T v) {
    return key_of(v) == key_of(T(0));
}

T addend(uint what, uint band) {
    T energy = canon(energies[origin + band]);
    if (what == ENERGY) {
        return energy;
    }
    T share = p_divide(energy, total);
    // A band without energy adds nothing; a share that is NaN makes the entropy NaN.
    return is_zero(share) ? T(0) : canon(-mul(share, p_log(share)));
}

void main() {
    for (uint state = first_item + gl_WorkGroupID.x; state < items; state += stride) {
        origin = state * bands;
        total = canon(group_sum64(ENERGY, bands));
        bool nothing = is_zero(total);
        T entropy = group_sum64(SURPRISE, nothing ? 0u : bands);
        if (gl_LocalInvocationIndex == 0u) {
            features[4u * state + 3u] = canon(entropy);
        }
    }
}
