const uint LANES = 256u;
const uint STATES = 15u;

shared uint counted[STATES];

// -2 ... 2: the sign of a value, twice where it is active.
int state_of(uint plane, uint at) {
    T value = canon(bands[plane * h * w + at]);
    if (is_nan_bits(value)) {
        return 0;
    }
    int sign = value > T(0) ? 1 : value < T(0) ? -1 : 0;
    T edge = mul(canon(tau), p_sqrt(canon(power[plane])));
    bool strong = !is_nan_bits(edge) && abs(value) > edge;
    return strong ? 2 * sign : sign;
}

// A workgroup counts one part of one tile. Whole numbers add up alike in any order.
void main() {
    uint lane = gl_LocalInvocationIndex;
    uint rows = h / side;
    uint columns = w / side;
    for (uint item = gl_WorkGroupID.x; item < total; item += stride) {
        uint tile = item / parts % (side * side);
        uint plane = item / parts / (side * side);
        uint before = plane % scales == 0u ? plane : plane - 1u;
        uint corner = tile / side * rows * w + tile % side * columns;
        if (lane < STATES) {
            counted[lane] = 0u;
        }
        barrier();
        uint own[STATES];
        for (uint k = 0u; k < STATES; k++) {
            own[k] = 0u;
        }
        for (uint i = item % parts * LANES + lane; i < rows * columns; i += parts * LANES) {
            uint at = corner + i / columns * w + i % columns;
            int here = state_of(plane, at);
            int coarse = state_of(before, at);
            uint number = uint(5 * (here / 2 + 1) + coarse + 2);
            for (uint k = 0u; k < STATES; k++) {
                own[k] += k == number ? 1u : 0u;
            }
        }
        for (uint k = 0u; k < STATES; k++) {
            if (own[k] > 0u) {
                atomicAdd(counted[k], own[k]);
            }
        }
        barrier();
        if (lane < STATES && counted[lane] > 0u) {
            atomicAdd(result[(item / parts) * STATES + lane], counted[lane]);
        }
        barrier();
    }
}
