void main() {
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint cell = i % plane;
        uint field = i / plane * 4u * plane + cell;
        uint slope = i / plane * 2u * plane + cell;
        T g_x = canon(slopes[slope]);
        T g_y = canon(slopes[slope + plane]);
        result[i] = canon(mul(canon(values[field]), g_x) + mul(canon(values[field + plane]), g_y));
        T across = mul(canon(values[field + 2u * plane]), g_y) - mul(canon(values[field + 3u * plane]), g_x);
        result[i + total] = canon(across);
    }
}
