// What each column must be multiplied with: limit / norm where its norm is above the limit, else 1. The squares of up
// to 64 x 4096 rows are summed in the order tree64.
const uint RUN = 64u;

T run_sum(uint column, uint start, uint end) {
    T total = T(0);
    for (uint i = start; i < end; i++) {
        T value = canon(x[i * n + column]);
        total += mul(value, value);
    }
    return total;
}

void main() {
    T most = canon(limit);
    for (uint column = gl_GlobalInvocationID.x; column < n; column += stride) {
        T total = T(0);
        for (uint top = 0u; top < rows; top += RUN * RUN) {
            T part = T(0);
            uint end = min(top + RUN * RUN, rows);
            for (uint start = top; start < end; start += RUN) {
                part += run_sum(column, start, min(start + RUN, end));
            }
            total += part;
        }
        T norm = p_sqrt(total);
        factors[column] = norm > most ? p_divide(most, norm) : T(1);
    }
}
