#include "psi.glsl"
#include "list_rollout.glsl"
#include "block_entries.glsl"

T make(uint out_at, uint column) {
    return activated(out_at, runs_sum(column, 0u, RUNS));
}
