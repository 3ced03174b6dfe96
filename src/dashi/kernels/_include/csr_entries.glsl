// Entry e multiplies component sources[e] of the state by values[e]; a source past the end gives NaN.
T linear_product(uint e) {
    uint from = sources[e];
    T factor = state_value(from < width ? from : 0u);
    return from < width ? mul(canon(values[e]), factor) : not_a_number();
}
