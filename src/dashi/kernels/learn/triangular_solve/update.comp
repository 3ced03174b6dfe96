// Adds the run of 64 products that the rows first to first + 64 of the result give to the sums of every later row.
const uint RUN = 64u;

void main() {
    uint i = first + RUN + gl_WorkGroupID.y;
    uint row = place(i);
    for (uint column = gl_GlobalInvocationID.x; column < m; column += stride) {
        T run = T(0);
        for (uint k = first; k < first + RUN; k++) {
            run += mul(element(i, k), result[place(k) * m + column]);
        }
        uint at = row * m + column;
        sums[at] = fresh != 0u ? run : sums[at] + run;
    }
}
