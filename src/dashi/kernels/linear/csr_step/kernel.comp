#include "psi.glsl"
#include "list_step.glsl"
#include "csr_entries.glsl"
#include "csr_activated.glsl"

T product(uint list_kind, uint e) {
    return linear_product(e);
}

T make(uint out_at) {
    uint start = offsets[out_at];
    uint beyond = offsets[out_at + 1u];
    bool good = list_is_whole(start, beyond, entries, longest);
    return activated(out_at, good, whole_sum(0u, start, good ? beyond : start));
}
