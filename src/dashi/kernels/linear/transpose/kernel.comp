// result (n, m) = x (m, n) with rows and columns exchanged. A workgroup carries a square of words through shared
// memory, so that neighbours read and write neighbours.
const uint SIDE = 16u;
shared W held[SIDE][SIDE + 1u];

void main() {
    uint column = gl_LocalInvocationID.x;
    uint row = gl_LocalInvocationID.y;
    for (uint tile = gl_WorkGroupID.x; tile < tiles; tile += stride) {
        uint left = (tile % across) * SIDE;
        uint top = (tile / across) * SIDE;
        if (top + row < m && left + column < n) {
            held[row][column] = x[(top + row) * n + left + column];
        }
        barrier();
        if (left + row < n && top + column < m) {
            result[(left + row) * m + top + column] = held[column][row];
        }
        barrier();
    }
}
