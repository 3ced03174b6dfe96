// The tendency of interacting modes, and the stage of a time scheme that it completes. The generated text before this
// has `T known_sum(uint item, uint at)`, the sum of the known terms in their order, and TERMS.
#include "list_step.glsl"
#include "mode_triads.glsl"

T product(uint list_kind, uint e) {
    return mode_product(list_kind, e);
}

T stage_term(T value, uint row, uint at) {
    return mul(canon(value), canon(tables[row * (width / 2u) + at / 2u]));
}

T make(uint out_at) {
    uint start = ends[out_at / 2u];
    uint beyond = ends[out_at / 2u + 1u];
    bool good = list_is_whole(start, beyond, entries, longest);
    T total = whole_sum(out_at % 2u, start, good ? beyond : start);
    T made = canon(canon(good ? total : not_a_number()) + canon(force[out_at]));
    uint item = origin + out_at;
#ifdef GROUPED
    if (gl_LocalInvocationIndex == 0u)
#endif
        tendency[item] = made;
    return known_sum(item, out_at) + stage_term(made, TERMS - 1u, out_at);
}
