// Adds the run of 64 products that the columns first to first + 64 of the factor give to the sums of every later
// element on or below the diagonal.
const uint RUN = 64u;

void main() {
    uint row = first + RUN + gl_WorkGroupID.y;
    uint column = first + RUN + gl_GlobalInvocationID.x;
    if (column <= row) {
        T run = T(0);
        for (uint k = first; k < first + RUN; k++) {
            run += mul(factor[row * n + k], factor[column * n + k]);
        }
        uint at = row * n + column;
        sums[at] = fresh != 0u ? run : sums[at] + run;
    }
}
