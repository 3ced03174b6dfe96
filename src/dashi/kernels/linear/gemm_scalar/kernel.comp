// result (m, n) = a (m, k) b (k, n) over k in [begin, end), at most 64 x 64 of them, in the order tree64: neighbours
// read the same element of a and neighbouring ones of b.
const uint RUN = 64u;

T run_sum(uint row, uint column, uint start) {
    T total = T(0);
    for (uint i = start; i < min(start + RUN, end); i++) {
        total += mul(canon(a[row * k + i]), canon(b[i * n + column]));
    }
    return total;
}

void main() {
    for (uint i = first_result + gl_GlobalInvocationID.x; i < results; i += stride) {
        T total = T(0);
        for (uint start = begin; start < end; start += RUN) {
            total += run_sum(i / n, i % n, start);
        }
        total = fresh != 0u ? total : result[i] + total;
        result[i] = last != 0u ? canon(total) : total;
    }
}
