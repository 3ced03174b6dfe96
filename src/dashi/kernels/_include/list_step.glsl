// One step of many states whose every output is made of sums over lists: an invocation for each output, or, with
// GROUPED, a workgroup. A kernel's file defines, besides what list_sum.glsl needs,
//     T make(uint out_at)    the output, of sums (`whole_sum` of a list with its bounds) and of what else it needs
// and reads the state by `state_value(i)`. Where GROUPED, all invocations of a workgroup make the same output.

uint origin;  // of the state in z

T state_value(uint i) {
    return canon(z[origin + i]);
}

#ifdef GROUPED
uint list_start;

T addend(uint list_kind, uint i) {
    return product(list_kind, list_start + i);
}

#include "group_sum64.glsl"

T whole_sum(uint list_kind, uint start, uint beyond) {
    list_start = start;
    return group_sum64(list_kind, beyond - start);
}
#else
T whole_sum(uint list_kind, uint start, uint beyond) {
    return list_sum(list_kind, start, beyond);
}
#endif

T make(uint out_at);

void main() {
#ifdef GROUPED
    uint me = gl_WorkGroupID.x;
    bool writes = gl_LocalInvocationIndex == 0u;
#else
    uint me = gl_GlobalInvocationID.x;
    bool writes = true;
#endif
    for (uint item = first_item + me; item < items; item += stride) {
        uint state = item / width;
        origin = state * width;
        T made = make(item - origin);
        if (writes) {
            result[item] = canon(made);
        }
    }
}
