// The list that is scanned: the elements, or the totals of tiles. Totals go on as they are: only what comes in and what
// goes out is made canonical.
#define EV TV

TV bring(uint j) {
    TV values = values_of(x[j]);
    if (first != 0u) {
        values = OVER(TV, flushed, values);
    }
    return values;
}
