// A sum, for reduce64.glsl and rest64.glsl. FINISH makes the result of the whole sum, canonical.
#define ACC T
#define SPREAD(v, k) subgroupQuadBroadcast(v, k)
#ifndef FINISH
#define FINISH canon
#endif

ACC none() {
    return T(0);
}

ACC take(T value, uint i) {
    return value;
}

ACC join(ACC a, ACC b) {
    return a + b;
}

void store(uint i, ACC v) {
    result[i] = last != 0u ? FINISH(v) : v;
}
