#include "list_rollout.glsl"
#include "slab_lists.glsl"
#include "quadratic_entries.glsl"

T product(uint list_kind, uint e) {
    if (list_kind == TRIADS) {
        return triad_product(slab_place(e));
    }
    return linear_product(slab_place(e));
}

bool find(uint list_kind, uint out_at, out uint length) {
    if (list_kind == TRIADS) {
        length = heads_triads[out_at];
        slab_base = heads_triads[width + out_at / SLAB] + out_at % SLAB;
        return slab_is_whole(length, triads, longest_triads);
    }
    length = heads[out_at];
    slab_base = heads[width + out_at / SLAB] + out_at % SLAB;
    return slab_is_whole(length, entries, longest_linear);
}

// The runs of L come first.
T run_of(uint out_at, uint run) {
    uint list_kind = run < RUNS_LINEAR ? LINEAR : TRIADS;
    uint length;
    if (!find(list_kind, out_at, length)) {
        return T(0);
    }
    uint from = min((run < RUNS_LINEAR ? run : run - RUNS_LINEAR) * RUN, length);
    return run_sum(list_kind, from, min(from + RUN, length));
}

T sum_of(uint list_kind, uint out_at, T total) {
    uint length;
    return find(list_kind, out_at, length) ? canon(total) : not_a_number();
}

T make(uint out_at, uint column) {
    T linear = sum_of(LINEAR, out_at, runs_sum(column, 0u, RUNS_LINEAR));
    T quadratic = sum_of(TRIADS, out_at, runs_sum(column, RUNS_LINEAR, RUNS - RUNS_LINEAR));
    return advanced(out_at, linear, quadratic);
}
