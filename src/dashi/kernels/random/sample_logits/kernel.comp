// One row per workgroup: the index of the largest score, the lowest among equals. Invocations go through every LANES-th.
#include "draws.glsl"

shared uint best_key[LANES];
shared uint best_index[LANES];

const uint GUMBEL = 2u;

void main() {
    uint me = gl_LocalInvocationIndex;
    for (uint row = first_row + gl_WorkGroupID.x; row < rows; row += stride) {
        uvec4 control = uvec4(keys[row * 4u], keys[row * 4u + 1u], keys[row * 4u + 2u], keys[row * 4u + 3u]);
        T heat = canon(temperature);
        uint key = 0u;
        uint index = 0xffffffffu;
        for (uint i = me; i < n; i += LANES) {
            T score = canon(logits[row * n + i]);
            if (heat > T(0)) {
                score = canon(score + mul(heat, draw(GUMBEL, control, i, stream)));
            }
            uint own = order_key(score);
            if (index == 0xffffffffu || own > key) {
                key = own;
                index = i;
            }
        }
        best_key[me] = key;
        best_index[me] = index;
        barrier();
        for (uint reach = LANES / 2u; reach > 0u; reach /= 2u) {
            if (me < reach) {
                uint other = best_index[me + reach];
                uint theirs = best_key[me + reach];
                bool better = other != 0xffffffffu
                    && (theirs > best_key[me] || (theirs == best_key[me] && other < best_index[me]));
                if (better) {
                    best_key[me] = theirs;
                    best_index[me] = other;
                }
            }
            barrier();
        }
        if (me == 0u) {
            result[row] = best_index[0];
        }
        barrier();
    }
}
