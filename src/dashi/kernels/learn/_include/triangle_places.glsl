// Rows and columns of a lower triangular matrix L, or of its transpose read from the last row to the first: that is
// lower triangular too, so one order of solving serves both.
uint place(uint i) {
    return transposed != 0u ? n - 1u - i : i;
}

T element(uint i, uint k) {
    return canon(transposed != 0u ? L[place(k) * n + place(i)] : L[i * n + k]);
}
