#include "list_step.glsl"
#include "triad_entries.glsl"

T product(uint list_kind, uint e) {
    return triad_product(e);
}

T make(uint out_at) {
    uint start = ends[out_at];
    uint beyond = ends[out_at + 1u];
    bool good = list_is_whole(start, beyond, triads, longest);
    T total = whole_sum(0u, start, good ? beyond : start);
    return good ? total : not_a_number();
}
