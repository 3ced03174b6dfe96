// How many keys of each block have each of the 256 digits at `shift`: counts[digit * blocks + block]. Whole numbers
// add up alike in any order.
#include "radix_keys.glsl"

const uint LANES = 256u;
// Bins for every eighth lane, so that equal keys do not all wait for one of them.
const uint COPIES = 8u;

shared uint bins[2048];

void main() {
    uint lane = gl_LocalInvocationIndex;
    uint block = gl_WorkGroupID.x;
    [[unroll]] for (uint c = 0u; c < COPIES; c++) {
        bins[c * LANES + lane] = 0u;
    }
    barrier();
    uint end = min(n, (block + 1u) * block_keys);
    for (uint first = block * block_keys + lane; first < end; first += LANES * ITEMS) {
        W key[ITEMS];
        [[unroll]] for (uint q = 0u; q < ITEMS; q++) {
            key[q] = source[min(first + q * LANES, n - 1u)];
        }
        [[unroll]] for (uint q = 0u; q < ITEMS; q++) {
            if (first + q * LANES < end) {
                atomicAdd(bins[digit_of(key[q]) * COPIES + lane % COPIES], 1u);
            }
        }
    }
    barrier();
    uint count = 0u;
    [[unroll]] for (uint c = 0u; c < COPIES; c++) {
        count += bins[lane * COPIES + c];
    }
    counts[lane * blocks + block] = count;
}
