// One workgroup per segment: in each chunk of 64 runs every invocation sums one run, the first adds the run sums in
// order, and the chunk sums after that: tree64 up to 64 chunks.
#include "segment.glsl"

shared T sums[64];

void main() {
    uint s = gl_WorkGroupID.y * columns + gl_WorkGroupID.x;
    uint lane = gl_LocalInvocationID.x;
    uint start = 0u, size = 0u;
    // The whole workgroup agrees on s, so it also agrees on the number of chunks, and on the barriers.
    bool whole = s < count && find_segment(s, start, size);
    uint end = start + size;
    uint chunks = whole ? (size + 4095u) / 4096u : 0u;
    T total = T(0.0);
    for (uint chunk = 0u; chunk < chunks; chunk++) {
        uint first = start + chunk * 4096u + lane * 64u;
        sums[lane] = run_sum(first, min(first + 64u, end));
        barrier();
        if (lane == 0u) {
            T part = T(0.0);
            uint runs = min((size - chunk * 4096u + 63u) / 64u, 64u);
            for (uint r = 0u; r < runs; r++) {
                part += sums[r];
            }
            total += part;
        }
        barrier();
    }
    if (lane == 0u && s < count) {
        result[s] = canon(canon(base[s]) + (whole ? total : not_a_number()));
    }
}
