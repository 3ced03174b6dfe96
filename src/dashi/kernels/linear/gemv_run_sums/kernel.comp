// One run of 64 rows and one column for each invocation. The sum is kept as it is: another kernel goes on with it.
const uint RUN = 64u;

void main() {
    for (uint entry = gl_GlobalInvocationID.x; entry < items; entry += stride) {
        uint column = entry % n;
        uint row = entry / n * RUN;
        uint end = min(row + RUN, k);
        T total = T(0);
        for (; row < end; row++) {
            total += mul(canon(x[row]), canon(A[row * n + column]));
        }
        result[entry] = total == total ? total : canon(total);
    }
}
