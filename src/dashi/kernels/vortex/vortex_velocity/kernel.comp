#include "portable_round.glsl"
#include "induction.glsl"

// An item is the sum over one tile of 64 x 64 sources at one target; neighbours have the same tile, and other targets.
void main() {
    for (uint item = first_item + gl_GlobalInvocationID.x; item < items; item += stride) {
        uint tile = item / t % tiles;
        uint member = item / t / tiles;
        uint place = w * (member * t + item % t);
        T x = canon(targets[place]);
        T y = canon(targets[place + 1u]);
        T own = canon(targets[place + 2u]);
        uint end = min(n, (tile + 1u) * 4096u);
        P total = P(0);
        for (uint run = tile * 4096u; run < end; run += 64u) {
            P sum = P(0);
            uint beyond = min(end, run + 64u);
            for (uint j = run; j < beyond; j++) {
                uint at = 4u * (member * n + j);
                T core = packed[at + 3u];
                if (MIXED != 0u) {
                    core = mul(T(0.5), own + core);
                }
                P made = induced(x - packed[at], y - packed[at + 1u], packed[at + 2u], core);
                sum = P(sum.x + made.x, sum.y + made.y);
            }
            total = P(total.x + sum.x, total.y + sum.y);
        }
        partial[item] = total;
    }
}
