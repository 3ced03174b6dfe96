// result (count, k): rows of W by their numbers, widened; 0 where there is no such row. An invocation has half a run, 32
// weights. Before this file: a format's file.
void main() {
    uint halves = (k + 31u) / 32u;
    for (uint item = gl_GlobalInvocationID.x; item < items; item += stride) {
        uint which = item / halves;
        uint h = item % halves;
        uint row = index[which];
        words = fetch(h / 2u, min(row, n - 1u));
        begin_half(h % 2u);
        [[unroll]] for (uint i = 0u; i < 4u; i++) {
            vec4 low, high;
            octet(i, low, high);
            [[unroll]] for (uint j = 0u; j < 8u; j++) {
                uint at = h * 32u + i * 8u + j;
                float value = j < 4u ? low[j % 4u] : high[j % 4u];
                if (at < k) {
                    result[which * k + at] = row < n ? canon(value) : 0.0;
                }
            }
        }
    }
}
