#include "list_step.glsl"
#include "quadratic_entries.glsl"

T product(uint list_kind, uint e) {
    if (list_kind == TRIADS) {
        return triad_product(e);
    }
    return linear_product(e);
}

T sum_of(uint list_kind, uint start, uint beyond, bool good) {
    T total = whole_sum(list_kind, start, good ? beyond : start);
    return good ? canon(total) : not_a_number();
}

T make(uint out_at) {
    uint start = offsets[out_at];
    uint beyond = offsets[out_at + 1u];
    T linear = sum_of(LINEAR, start, beyond, list_is_whole(start, beyond, entries, longest_linear));
    start = ends[out_at];
    beyond = ends[out_at + 1u];
    T quadratic = sum_of(TRIADS, start, beyond, list_is_whole(start, beyond, triads, longest_triads));
    return advanced(out_at, linear, quadratic);
}
