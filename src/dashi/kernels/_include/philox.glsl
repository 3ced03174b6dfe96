// Philox 4x32 with ten rounds: random words from a counter and a key (J. Salmon, M. Moraes, R. Dror, D. Shaw, SC 2011,
// doi 10.1145/2063384.2063405). Integers only. The twin is kernels/philox.py.
#ifndef PHILOX_GLSL
#define PHILOX_GLSL

uvec4 philox(uvec4 counter, uvec2 key) {
    for (uint turn = 0u; turn < 10u; turn++) {
        uint high_0;
        uint low_0;
        uint high_1;
        uint low_1;
        umulExtended(0xd2511f53u, counter.x, high_0, low_0);
        umulExtended(0xcd9e8d57u, counter.z, high_1, low_1);
        counter = uvec4(high_1 ^ counter.y ^ key.x, low_1, high_0 ^ counter.w ^ key.y, low_0);
        key += uvec2(0x9e3779b9u, 0xbb67ae85u);
    }
    return counter;
}

#endif
