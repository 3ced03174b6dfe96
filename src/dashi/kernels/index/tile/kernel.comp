// Neighbours go along a row of the result; the place in the source row is stepped, not divided for. Elements are single
// words, or vectors where rows are made of such.
void main() {
    for (uint i = gl_GlobalInvocationID.y; i < rows; i += stride_rows) {
        uint from = i % h * w;
        uint j = gl_GlobalInvocationID.x;
        uint k = j % w;
        for (; j < columns; j += stride) {
            result[i * columns + j] = x[from + k];
            k += step;
            k -= k >= w ? w : 0u;
        }
    }
}
