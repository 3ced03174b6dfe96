#include "yuv.glsl"

uint pixel(uint i) {
    uint y = i / w;
    uint x = i - y * w;
    uint pair = (y / 2u) * (w / 2u) + x / 2u;  // two bytes, never across a word
    uint uv = chroma[pair / 2u] >> (16u * (pair & 1u));
    return rgba((luma[i / 4u] >> (8u * (i & 3u))) & 255u, uv & 255u, (uv >> 8) & 255u);
}
