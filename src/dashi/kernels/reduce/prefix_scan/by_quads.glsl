// Four invocations for each run: at its turn each finds what its own vector starts from.
#include "quads64.glsl"

#define TURN(k)                                               \
    {                                                         \
        T start = total;                                      \
        TV made = prefix(start, mine[m]);                     \
        sums = lane() % 4u == k ? made : sums;                \
        total = subgroupQuadBroadcast(start, k);              \
    }

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    uint run = lane() / 4u;
    for (uint tile = gl_WorkGroupID.x; tile < tiles; tile += stride) {
        TV mine[MINE];
        BRING_MINE(tile, mine)
        T total = T(0);
        [[unroll]] for (uint m = 0u; m < MINE; m++) {
            TV sums = TV(0);
            TURN(0u)
            TURN(1u)
            TURN(2u)
            TURN(3u)
            mine[m] = sums;
        }
        if (lane() % 4u == 0u) {
            carries[run] = total;
        }
        barrier();
        if (lane() == 0u) {
            scan_totals(tile);
        }
        barrier();
        T carry = carries[run];
        [[unroll]] for (uint m = 0u; m < MINE; m++) {
            uint j = mine_place(tile) + 4u * m;
            if (j * ELEMS < n) {
                write(j, carry + mine[m]);
            }
        }
        barrier();
    }
}
