#include "yuv.glsl"

uvec4 quad(uint q) {
    uint across = w / 4u;
    uint y = q / across;
    uint x = q - y * across;
    uint four = luma[q];
    uint uv = chroma[(y / 2u) * across + x];
    return uvec4(
        rgba(four & 255u, uv & 255u, (uv >> 8) & 255u),
        rgba((four >> 8) & 255u, uv & 255u, (uv >> 8) & 255u),
        rgba((four >> 16) & 255u, (uv >> 16) & 255u, uv >> 24),
        rgba(four >> 24, (uv >> 16) & 255u, uv >> 24)
    );
}
