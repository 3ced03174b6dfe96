// The step itself: the list of an output is all rows of A: its entries are the components of the state, in order.
#include "psi.glsl"
#include "list_tile.glsl"

const uint RELAX = 1u;

uint column_at;

T product(uint list_kind, uint e) {
    return mul(state_value(e), canon(A[e * width + column_at]));
}

T run_of(uint out_at, uint run) {
    column_at = out_at;
    uint from = min(run * RUN, width);
    return run_sum(0u, from, min(from + RUN, width));
}

T make(uint out_at, T total) {
    T made = apply_psi(PSI, canon(total) + canon(b[out_at]), alpha, low, high);
    if ((flags & RELAX) != 0u) {
        T here = state_value(out_at);
        made = here + mul(canon(dt), canon(made - here));
    }
    return made;
}
