// Rows of a field, of whose modes the first are kept, loaded to be taken back to physical space. Whoever includes it says
// how many fields lie beside each other: ROW_FIELDS.
P row_mode(uint base, uint k) {
    return k < kept ? source[base + k] : P(0);
}

void row_load(uint first, uint field) {
    [[unroll]] for (uint u = 0u; u < fft_units(R0); u++) {
        FftPlace at = fft_place(u, R0);
        uint line = first + at.line;
        uint base = ((line / height * ROW_FIELDS + field) * height + line % height) * kept;
        [[unroll]] for (uint t = 0u; t < R0; t++) {
            P z = P(0);
            uint i = at.j + t * (N / R0);
            if (at.there && (WHOLE == 1u || line < lines)) {
                z = fft_together(row_mode(base, i), row_mode(base, N - i), i).yx;
            }
            value[u * R0 + t] = fft_hold(z);
        }
    }
}
