// A sum in the canonical order tree64 by one invocation, of up to 64^4 addends: runs of 64, then runs of their sums.
// A kernel's file defines the addends of an item; at most count + 2 (count / 64 + 1) + count / 4096 + 1 trips.
T addend(uint item, uint i);

T sum64(uint item, uint count) {
    T sums[3] = T[3](T(0), T(0), T(0));
    for (uint run = 0u; run * 64u < count; run++) {
        T sum = T(0);
        uint end = min(run * 64u + 64u, count);
        for (uint i = run * 64u; i < end; i++) {
            sum += addend(item, i);
        }
        sums[0] += sum;
        for (uint level = 1u; level < 3u && ((run + 1u) & ((1u << (6u * level)) - 1u)) == 0u; level++) {
            sums[level] += sums[level - 1u];
            sums[level - 1u] = T(0);
        }
    }
    // What is left at every level; adding to +0 changes nothing.
    return sums[2] + (sums[1] + sums[0]);
}
