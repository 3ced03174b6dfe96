uint channel_diff(uint p, uint q, uint shift) {
    int d = int((p >> shift) & 255u) - int((q >> shift) & 255u);
    return uint(abs(d)) << shift;
}

uint diff(uint p, uint q) {
    return 0xff000000u | channel_diff(p, q, 0u) | channel_diff(p, q, 8u) | channel_diff(p, q, 16u);
}
