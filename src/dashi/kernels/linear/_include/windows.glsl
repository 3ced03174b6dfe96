// Where an element of b lies that is a tap of a window: k counts channels and up to three axes of taps, columns up to
// three axes of windows, the last the fastest. Lengths and strides are specialisation constants.
uint place_of_tap(uint k) {
    uint place = k % TAP3 * BY_TAP3;
    k /= TAP3;
    place += k % TAP2 * BY_TAP2;
    k /= TAP2;
    return place + k % TAP1 * BY_TAP1 + k / TAP1 * BY_CHANNEL;
}

uint place_of_window(uint column) {
    uint place = column % OUT3 * BY_OUT3;
    column /= OUT3;
    return place + column % OUT2 * BY_OUT2 + column / OUT2 * BY_OUT1;
}

#define B_PLACE(depth, column) place_of_tap(depth) + place_of_window(column)
