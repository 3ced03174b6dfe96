// A workgroup sums one shell of one member in the order tree64: tiles of 64 runs, an invocation for every run.
shared T sums[64];

T shell_nan() {
#if T_IS_F64
    return packDouble2x32(uvec2(0u, 0x7ff80000u));
#else
    return uintBitsToFloat(F32_NAN);
#endif
}

T product(uint member, uint e) {
    uint place = places[e];
    if (place >= plane) {
        return shell_nan();
    }
    P a = x[member * plane + place];
    P b = y[member * plane + place];
    return mul(canon(weights[e]), mul(canon(a.x), canon(b.x)) + mul(canon(a.y), canon(b.y)));
}

void main() {
    uint lane = gl_LocalInvocationIndex;
    for (uint item = gl_WorkGroupID.x; item < total; item += stride) {
        uint member = item / shells;
        uint first = offsets[item % shells];
        uint beyond = offsets[item % shells + 1u];
        bool whole = first <= beyond && beyond <= entries && beyond - first <= longest;
        uint tiles = whole ? (beyond - first + 4095u) / 4096u : 0u;
        T all = T(0);
        for (uint tile = 0u; tile < tiles; tile++) {
            uint start = first + (tile * 64u + lane) * 64u;
            T run = T(0);
            for (uint e = start; e < min(start + 64u, beyond); e++) {
                run += product(member, e);
            }
            sums[lane] = run;
            barrier();
            T part = T(0);
            for (uint r = 0u; r < 64u; r++) {
                part += sums[r];
            }
            barrier();
            all += part;
        }
        if (lane == 0u) {
            result[item] = whole ? canon(all) : shell_nan();
        }
    }
}
