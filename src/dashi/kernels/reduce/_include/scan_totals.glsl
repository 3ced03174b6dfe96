// The total of every run of 64 elements of every row.
void main() {
    for (uint item = gl_GlobalInvocationID.x; item < items; item += stride) {
        uint row = item / runs;
        uint begin = (item - row * runs) * 64u;
        uint end = min(begin + 64u, n);
        T total = START;
        for (uint i = begin; i < end; i++) {
            total = JOIN(total, LOAD(x[row * n + i]));
        }
        totals[item] = total;
    }
}
