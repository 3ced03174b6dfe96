// All rounds of a tile in shared memory. A round needs one more ring of neighbours, so a tile comes with HALO rows
// and HALO sites on every side; what the edges make of neighbours that are not there never reaches its middle.
// Trits are raised to 0, 1, 2, so that bytes add without borrowing: a box sums to at most 18.
#include "trits.glsl"

const uint HALO = 8u;
const uint WIDE = 16u;  // words of four sites
const uint TALL = 16u;
const uint SIDE = HALO / 4u;
const uint ROW = WIDE + 2u * SIDE;
const uint ROWS = TALL + 2u * HALO;
const uint LANES = 256u;

shared uint field[2u * ROW * ROWS];

uint lifted(uint bytes) {
    return ONES + trits_support(bytes) - 2u * trits_minus(bytes);
}

uint column(uint from, uint y, uint c) {
    uint above = max(y, 1u) - 1u;
    uint below_it = min(y + 1u, ROWS - 1u);
    return field[from + above * ROW + c] + field[from + y * ROW + c] + field[from + below_it * ROW + c];
}

uint voted(uint from, uint y, uint c) {
    uint before = column(from, y, max(c, 1u) - 1u);
    uint middle = column(from, y, c);
    uint after = column(from, y, min(c + 1u, ROW - 1u));
    uint total = middle + (middle << 8 | before >> 24) + (middle >> 8 | after << 24);
    uint own = field[from + y * ROW + c];
    uint keep = ONES & ~own;  // raised, a site without support is 1
    uint plus = ((total + above_all) >> 7) & keep;
    uint minus = (~(total + under_all) >> 7) & keep;
    return ONES + plus - minus;
}

void main() {
    for (uint item = gl_WorkGroupID.x; item < items; item += stride) {
        uint member = item / (across * down);
        uint top = item / across % down * TALL;
        uint left = item % across * WIDE;
        uint words = w / 4u;
        for (uint i = gl_LocalInvocationIndex; i < ROW * ROWS; i += LANES) {
            uint y = (top + i / ROW + lift_h - HALO) % h;
            uint x = (left + i % ROW + lift_w - SIDE) % words;
            field[i] = lifted(s[(member * h + y) * words + x]);
        }
        barrier();
        uint from = 0u;
        for (uint turn = 0u; turn < turns; turn++) {
            uint to = ROW * ROWS - from;
            for (uint i = gl_LocalInvocationIndex; i < ROW * ROWS; i += LANES) {
                field[to + i] = voted(from, i / ROW, i % ROW);
            }
            barrier();
            from = to;
        }
        for (uint i = gl_LocalInvocationIndex; i < WIDE * TALL; i += LANES) {
            uint y = i / WIDE;
            uint x = i % WIDE;
            if (top + y < h && left + x < words) {
                uint made = field[from + (y + HALO) * ROW + x + SIDE];
                uint support = ONES & ~made;
                result[(member * h + top + y) * words + left + x] = support + (support & ~(made >> 1)) * 254u;
            }
        }
        barrier();
    }
}
