// Fixed point with 16 fraction bits, rounded to the nearest, halves up: a shift of a negative int keeps its sign.
int channel(int sum) {
    return clamp((sum + 32768) >> 16, 0, 255);
}

uint rgba(uint luma_byte, uint u_byte, uint v_byte) {
    int y = y_all * (int(luma_byte) - 16);
    int u = int(u_byte) - 128;
    int v = int(v_byte) - 128;
    uint red = uint(channel(y + v_red * v));
    uint green = uint(channel(y - u_green * u - v_green * v));
    uint blue = uint(channel(y + u_blue * u));
    return 0xff000000u | blue << 16 | green << 8 | red;
}
