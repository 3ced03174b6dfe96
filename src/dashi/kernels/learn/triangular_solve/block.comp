// The rows first to first + 64 of the result, one column per invocation.
const uint RUN = 64u;

void solve(uint column) {
    T made[RUN];
    for (uint i = 0u; i < min(RUN, n - first); i++) {
        uint row = place(first + i);
        T run = T(0);
        for (uint k = 0u; k < i; k++) {
            run += mul(element(first + i, first + k), made[k]);
        }
        T total = (fresh != 0u ? T(0) : sums[row * m + column]) + run;
        made[i] = p_divide(canon(b[row * m + column]) - total, element(first + i, first + i));
        result[row * m + column] = made[i];
    }
}

void main() {
    for (uint column = gl_GlobalInvocationID.x; column < m; column += stride) {
        solve(column);
    }
}
