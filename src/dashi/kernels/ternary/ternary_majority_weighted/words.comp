// Rows that are whole words, and weights that reach no farther than a word to either side: an invocation makes the four
// sites of a word. Every row of the neighbourhood is three words, whose trits are taken apart once for all weights.
// Needs the buffers s, weights and result, the push constants across (words of a row), rise (half of TALL, round the
// rows) and those of the kernel, and the specialisation constants TALL and WIDE.
#include "trits.glsl"

const uint HALF = WIDE / 2u;  // at most 4

int trit_from(uint bytes, uint place) {
    uint byte = bytes >> (8u * place);
    return int(byte & 1u) - int(byte & (byte >> 1) & 1u) * 2;
}

// Four times the weights of a row times the trits that they belong to.
ivec4 row_sums(uint start, uvec3 columns, uint at) {
    uvec3 near = uvec3(s[start + columns.x], s[start + columns.y], s[start + columns.z]);
    int trits[12];
    [[unroll]] for (uint i = 0u; i < 12u; i++) {
        trits[i] = trit_from(near[i / 4u], i % 4u);
    }
    ivec4 sums = ivec4(0);
    [[unroll]] for (uint dx = 0u; dx < WIDE; dx++) {
        uint first = 4u - HALF + dx;
        sums += weights[at + dx] * ivec4(trits[first], trits[first + 1u], trits[first + 2u], trits[first + 3u]);
    }
    return sums;
}

uint placed(int sum, uint place) {
    return uint(sum >= eta ? 1 : (sum <= -eta ? 0xff : 0)) << (8u * place);
}

void main() {
    for (uint item = gl_GlobalInvocationID.x; item < items; item += stride) {
        uint row = item / across;
        uint column = item - row * across;
        uvec3 columns = uvec3(column == 0u ? across - 1u : column - 1u, column, column + 1u == across ? 0u : column + 1u);
        uint y = row >= rise ? row - rise : row + h - rise;
        ivec4 sums = ivec4(0);
        for (uint dy = 0u; dy < TALL; dy++) {
            sums += row_sums(y * across, columns, dy * WIDE);
            y = y + 1u == h ? 0u : y + 1u;
        }
        uint votes = placed(sums.x, 0u) | placed(sums.y, 1u) | placed(sums.z, 2u) | placed(sums.w, 3u);
        result[item] = grow != 0u ? votes : votes & trits_support(s[item]) * 255u;
    }
}
