// Results of a product by batch, row and column, and what becomes of a sum. A batch has up to four axes, of the lengths
// (any, SIZE1, SIZE2, SIZE3), the last the fastest. The shader defines `T finish(T value, Place at)`.
struct Place {
    uint z0, z1, z2, z3, row, column;
};

T finish(T value, Place at);

Place place_of(uint batch) {
    Place at;
    at.z3 = batch % SIZE3;
    batch /= SIZE3;
    at.z2 = batch % SIZE2;
    batch /= SIZE2;
    at.z1 = batch % SIZE1;
    at.z0 = batch / SIZE1;
    at.row = 0u;
    at.column = 0u;
    return at;
}

// Adds to what earlier dispatches have summed; the last one makes the result of it.
void store_sum(uint i, T sum, Place at) {
    T total = fresh != 0u ? sum : result[i] + sum;
    result[i] = last != 0u ? canon(finish(total, at)) : total;
}
