// The addends of segment s are values[order[start]] onwards. A segment that is longer than declared, or that leaves the
// lists, has no sum: it gives NaN, so that nobody takes a part for the whole.
bool find_segment(uint s, out uint start, out uint size) {
    start = offsets[s];
    uint end = offsets[s + 1u];
    size = end - start;
    return start <= end && end <= n && size <= longest;
}

#include "not_a_number.glsl"

T addend(uint k) {
    uint from = order[k];
    T value = not_a_number();
    if (from < n) {
        value = canon(values[from]);
    }
    return value;
}

T run_sum(uint first, uint end) {
    T total = T(0.0);
    for (uint k = first; k < end; k++) {
        total += addend(k);
    }
    return total;
}
