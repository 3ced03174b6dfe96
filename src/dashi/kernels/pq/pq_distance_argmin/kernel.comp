// The distance of every item, the entries of its codes added in the canonical order; and each workgroup's nearest.
#include "best.glsl"
#include "item_sum64.glsl"

uint code_at(uint i) {
    return (codes[i / 4u] >> (8u * (i % 4u))) & 0xffu;
}

// A code that the table does not have is infinitely far.
T addend(uint item, uint part) {
#if T_IS_F64
    T far = packDouble2x32(uvec2(0u, F64_INF_HIGH));
#else
    T far = uintBitsToFloat(F32_INF);
#endif
    uint code = code_at(item * m + part);
    if (code < k) {
        far = canon(table[part * k + code]);
    }
    return far;
}

void main() {
    KEY best = KEY(0);
    uint place = 0xffffffffu;
    for (uint item = gl_GlobalInvocationID.x; item < items; item += stride) {
        T distance = canon(sum64(item, m));
        distances[item] = distance;
        KEY key = nearness(distance);
        if (nearer(key, item, best, place)) {
            best = key;
            place = item;
        }
    }
    uint found = nearest_of(best, place);
    if (gl_LocalInvocationIndex == 0u) {
        candidates[gl_WorkGroupID.x] = found;
    }
}
