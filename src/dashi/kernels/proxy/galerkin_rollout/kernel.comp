// Many steps of one state in one workgroup, as list_rollout.glsl takes them, with the stages of a time scheme: the
// state, the tendencies of all stages and the present and next stage lie in shared memory. EACH lanes share the runs of
// an output; the lane that makes an output is the only one that reads and writes what is known of it.
const uint GROUPS = LOCAL / EACH;
const uint TERMS = 5u;

shared T held[2u * WIDTH];
shared T known[(STAGES + 1u) * WIDTH];
shared T slots[GROUPS * RUNS];

uint origin;  // of the present stage in `held`

T state_value(uint i) {
    return held[origin + i];
}

#include "slab_lists.glsl"
#include "mode_triads.glsl"

T product(uint list_kind, uint e) {
    return mode_product(list_kind, slab_place(e));
}

bool find(uint out_at, out uint length) {
    uint mode = out_at / 2u;
    length = heads[mode];
    slab_base = heads[width / 2u + mode / SLAB] + mode % SLAB;
    return slab_is_whole(length, entries, longest);
}

T run_of(uint out_at, uint run) {
    uint length;
    if (!find(out_at, length)) {
        return T(0);
    }
    uint from = min(run * RUN, length);
    return run_sum(out_at % 2u, from, min(from + RUN, length));
}

// The output of a stage: its tendency is kept, and the terms that the stage adds are added in order.
T make(uint out_at, uint column, uint stage) {
    T total = T(0);
    for (uint run = 0u; run < RUNS; run++) {
        total += slots[run * GROUPS + column];
    }
    uint length;
    total = find(out_at, length) ? canon(total) : not_a_number();
    known[(stage + 1u) * WIDTH + out_at] = canon(total + canon(force[out_at]));
    T sums = T(0);
    for (uint j = 0u; j <= stage + 1u; j++) {
        if ((used >> (TERMS * stage + j) & 1u) == 1u) {
            T weight = canon(tables[(TERMS * stage + j) * (width / 2u) + out_at / 2u]);
            sums += mul(known[j * WIDTH + out_at], weight);
        }
    }
    return canon(sums);
}

void make_outputs(uint first, uint target, uint stage) {
    uint column = gl_LocalInvocationIndex % GROUPS;
    uint lane = gl_LocalInvocationIndex / GROUPS;
    uint out_at = first + column;
    bool live = out_at < width;
    for (uint run = lane; run < RUNS; run += EACH) {
        slots[run * GROUPS + column] = live ? run_of(out_at, run) : T(0);
    }
    if (EACH > 1u) {
        barrier();
    }
    if (live && lane == 0u) {
        held[target + out_at] = make(out_at, column, stage);
    }
    if (EACH > 1u) {
        barrier();
    }
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    uint me = gl_LocalInvocationIndex;
    uint base = (first_state + gl_WorkGroupID.x) * width;
    for (uint i = me; i < width; i += LOCAL) {
        held[i] = canon(z[base + i]);
    }
    barrier();
    origin = 0u;
    for (uint t = 0u; t < steps; t++) {
        for (uint i = me; i < width; i += LOCAL) {
            known[i] = held[origin + i];
        }
        barrier();
        for (uint stage = 0u; stage < STAGES; stage++) {
            uint target = WIDTH - origin;
            for (uint first = 0u; first < width; first += GROUPS) {
                make_outputs(first, target, stage);
            }
            barrier();
            origin = target;
        }
    }
    for (uint i = me; i < width; i += LOCAL) {
        result[base + i] = held[origin + i];
    }
}
