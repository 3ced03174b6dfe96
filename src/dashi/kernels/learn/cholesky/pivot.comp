// The square of up to 64 x 64 at (first, first): one invocation per row. A column is made, shared, and its products
// are added to the run of every column to its right, so each run adds its products in the order of k.
const uint RUN = 64u;
shared T column[RUN];
shared T root;

void main() {
    uint row = gl_LocalInvocationID.x;
    uint width = min(RUN, n - first);
    T run[RUN];
    for (uint j = 0u; j < RUN; j++) {
        run[j] = T(0);
    }
    for (uint j = 0u; j < width; j++) {
        uint at = (first + row) * n + first + j;
        bool below = row > j && row < width;
        T rest = T(0);
        if (row == j || below) {
            T whole = canon(a[at]) + (row == j ? canon(shift) : T(0));
            rest = whole - ((fresh != 0u ? T(0) : sums[at]) + run[j]);
            if (row == j) {
                margin[first + j] = p_divide(rest, whole);
                root = p_sqrt(rest);
                factor[at] = root;
            }
        }
        barrier();
        T made = T(0);
        if (below) {
            made = p_divide(rest, root);
            factor[at] = made;
        } else if (row < j) {
            factor[at] = T(0);
        }
        column[row] = made;
        barrier();
        if (below) {
            for (uint q = j + 1u; q <= row; q++) {
                run[q] += mul(made, column[q]);
            }
        }
    }
}
