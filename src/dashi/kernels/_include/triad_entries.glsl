// Entry e of a list of triads adds weights[e] z[i] z[j] with i = pairs[e, 0] and j = pairs[e, 1]; a component past the
// end gives NaN.
T triad_product(uint e) {
    uint i = pairs[2u * e];
    uint j = pairs[2u * e + 1u];
    bool inside = i < width && j < width;
    T square = mul(state_value(inside ? i : 0u), state_value(inside ? j : 0u));
    return inside ? mul(canon(weights[e]), canon(square)) : not_a_number();
}
