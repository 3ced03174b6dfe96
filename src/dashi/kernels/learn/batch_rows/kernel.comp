// Row r of the result is the row of x that order names at (batch, r).
void main() {
    for (uint i = gl_GlobalInvocationID.x; i < m * d; i += stride) {
        uint row = order[batch * m + i / d];
        W value = W(0);
        if (row < n) {
            value = x[row * d + i % d];
        }
        result[i] = value;
    }
}
