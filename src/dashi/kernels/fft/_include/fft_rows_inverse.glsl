// Real lines of an even number of values from their modes, as the source holds them.

P fft_mode(uint outer, uint i) {
    P z = source[outer * (N + 1u) + i];
    return (RAW & 1u) != 0u ? z : fft_flushed(z);
}

void fft_store(uint outer, uint inner, uint j, uint hop, P z) {
    result[outer * N + j + hop] = z;
}
