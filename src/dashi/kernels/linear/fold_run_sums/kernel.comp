// One column for each invocation: the levels above the runs, up to 64^4 of them.
const uint RUN = 64u;

void main() {
    for (uint column = gl_GlobalInvocationID.x; column < items; column += stride) {
        T first = T(0);
        T second = T(0);
        T third = T(0);
        T fourth = T(0);
        for (uint run = 0u; run < runs; run++) {
            first += sums[run * items + column];
            uint done = run + 1u;
            if (done % RUN == 0u || done == runs) {
                second += first;
                first = T(0);
            }
            if (done % (RUN * RUN) == 0u || done == runs) {
                third += second;
                second = T(0);
            }
            if (done % (RUN * RUN * RUN) == 0u || done == runs) {
                fourth += third;
                third = T(0);
            }
        }
        result[column] = canon(fourth);
    }
}
