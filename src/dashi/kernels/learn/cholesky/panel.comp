// The columns first to first + 64 of every row outside the square that pivot.comp made, one row per invocation: those
// above it are zero, those below are solved for.
const uint RUN = 64u;

void solve(uint row) {
    T made[RUN];
    for (uint j = 0u; j < RUN; j++) {
        uint at = row * n + first + j;
        uint over = (first + j) * n + first;
        T run = T(0);
        for (uint k = 0u; k < j; k++) {
            run += mul(made[k], factor[over + k]);
        }
        T rest = canon(a[at]) - ((fresh != 0u ? T(0) : sums[at]) + run);
        made[j] = p_divide(rest, factor[over + j]);
        factor[at] = made[j];
    }
}

void main() {
    for (uint row = gl_GlobalInvocationID.x; row < n; row += stride) {
        if (row < first) {
            for (uint j = first; j < min(first + RUN, n); j++) {
                factor[row * n + j] = T(0);
            }
        } else if (row >= first + RUN) {
            solve(row);
        }
    }
}
