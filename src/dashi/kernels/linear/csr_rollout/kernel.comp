#include "psi.glsl"
#include "list_rollout.glsl"
#include "slab_lists.glsl"
#include "csr_entries.glsl"
#include "csr_activated.glsl"

T product(uint list_kind, uint e) {
    return linear_product(slab_place(e));
}

bool find(uint out_at, out uint length) {
    length = heads[out_at];
    slab_base = heads[width + out_at / SLAB] + out_at % SLAB;
    return slab_is_whole(length, entries, longest);
}

T run_of(uint out_at, uint run) {
    uint length;
    if (!find(out_at, length)) {
        return T(0);
    }
    uint from = min(run * RUN, length);
    return run_sum(0u, from, min(from + RUN, length));
}

T make(uint out_at, uint column) {
    uint length;
    bool good = find(out_at, length);
    return activated(out_at, good, runs_sum(column, 0u, RUNS));
}
