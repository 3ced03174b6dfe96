// The first pass of a reduction where order does not matter: n elements to one value per workgroup of 256 x 1 x 1. The
// list goes by, neighbours reading neighbours. The later passes are rest64.glsl. A kernel's file includes vectors.glsl,
// then this after it has defined
//     ACC, ACC none(), ACC join(ACC a, ACC b)             as reduce64.glsl explains them, in any order
//     ACC join_words(ACC total, uvec4 words, uint i)      joins the elements from i on that lie in a vector of x
//     ACC join_end(ACC total, uvec4 words, uint i)        the same for those that are before n
//     void store(uint i, ACC v)                           the value of workgroup i
// and has the buffer x and the push constants n and stride (u32), the number of workgroups. Each has an element.

const uint LANES = 256u;
#ifndef AHEAD
#define AHEAD 8u  // loads that do not wait for each other
#endif

shared ACC lane_values[LANES];

void main() {
    uint lane = gl_LocalInvocationIndex;
    uint whole = n / ELEMS;
    uint pace = stride * LANES;
    uint j = gl_WorkGroupID.x * LANES + lane;
    ACC total = none();
    for (; j + (AHEAD - 1u) * pace < whole; j += AHEAD * pace) {
        uvec4 words[AHEAD];
        [[unroll]] for (uint a = 0u; a < AHEAD; a++) {
            words[a] = x[j + a * pace];
        }
        [[unroll]] for (uint a = 0u; a < AHEAD; a++) {
            total = join_words(total, words[a], (j + a * pace) * ELEMS);
        }
    }
    for (; j < whole; j += pace) {
        total = join_words(total, x[j], j * ELEMS);
    }
    if (j * ELEMS < n) {
        total = join_end(total, x[j], j * ELEMS);
    }
    lane_values[lane] = total;
    for (uint others = LANES / 2u; others > 0u; others /= 2u) {
        barrier();
        if (lane < others) {
            lane_values[lane] = join(lane_values[lane], lane_values[lane + others]);
        }
    }
    if (lane == 0u) {
        store(gl_WorkGroupID.x, lane_values[0]);
    }
}
