// Each invocation sums the list of its own output: for devices with caches and few lanes.
#include "psi.glsl"
#include "list_step.glsl"
#include "block_entries.glsl"

T make(uint out_at) {
    uint start, beyond;
    bool good = find(out_at, start, beyond);
    block_column = out_at % SIDE;
    return activated(out_at, whole_sum(0u, start * SIDE, (good ? beyond : start) * SIDE));
}
