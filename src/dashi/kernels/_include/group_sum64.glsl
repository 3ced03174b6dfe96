// A sum in the canonical order tree64 by a whole workgroup of LANES invocations (a specialisation constant): addends
// are made side by side, 16 runs of 64 at a time, and go through shared memory; any count up to 64^5. A kernel's file
// defines the addends of an item. All invocations call group_sum64 together, and all get the sum. It makes at most
// (count / 1024 + 1) (2 + 1024 / LANES + 8) + (count / 4096 + 1) (16 + 3) trips.
T addend(uint item, uint i);

const uint GROUP_RUNS = 16u;
const uint GROUP_CHUNK = 64u * GROUP_RUNS;

shared T group_staged[GROUP_CHUNK + GROUP_CHUNK / 32u];
shared T group_runs[64];
shared T group_total;

// Shifted by one in 32, so that runs do not meet in one bank.
uint group_place(uint i) {
    return i + i / 32u;
}

// Eight staged numbers, added in order: their loads do not wait for the sum.
T group_add8(T total, uint i) {
    uint at = group_place(i);
    T v0 = group_staged[at];
    T v1 = group_staged[at + 1u];
    T v2 = group_staged[at + 2u];
    T v3 = group_staged[at + 3u];
    T v4 = group_staged[at + 4u];
    T v5 = group_staged[at + 5u];
    T v6 = group_staged[at + 6u];
    T v7 = group_staged[at + 7u];
    total += v0;
    total += v1;
    total += v2;
    total += v3;
    total += v4;
    total += v5;
    total += v6;
    return total + v7;
}

// The last run is filled up with +0, which changes no sum.
void group_chunk(uint item, uint from, uint count) {
    uint me = gl_LocalInvocationIndex;
    uint here = min(count - from, GROUP_CHUNK);
    uint runs = (here + 63u) / 64u;
    for (uint i = me; i < runs * 64u; i += LANES) {
        T value = T(0);
        if (i < here) {
            value = addend(item, from + i);
        }
        group_staged[group_place(i)] = value;
    }
    barrier();
    if (me < GROUP_RUNS) {
        T total = T(0);
        for (uint i = me * 64u; me < runs && i < me * 64u + 64u; i += 8u) {
            total = group_add8(total, i);
        }
        group_runs[from / 64u % 64u + me] = total;
    }
    barrier();
}

T group_sum64(uint item, uint count) {
    T sums[3] = T[3](T(0), T(0), T(0));
    for (uint from = 0u; from < count; from += GROUP_CHUNK) {
        group_chunk(item, from, count);
        uint runs = from / 64u % 64u + GROUP_RUNS;
        if (gl_LocalInvocationIndex == 0u && (runs == 64u || from + GROUP_CHUNK >= count)) {
            T tile = T(0);
            for (uint r = 0u; r < runs; r += 4u) {
                T r0 = group_runs[r];
                T r1 = group_runs[r + 1u];
                T r2 = group_runs[r + 2u];
                T r3 = group_runs[r + 3u];
                tile += r0;
                tile += r1;
                tile += r2;
                tile += r3;
            }
            sums[0] += tile;
            uint tiles = from / 4096u + 1u;
            for (uint level = 1u; level < 3u && (tiles & ((1u << (6u * level)) - 1u)) == 0u; level++) {
                sums[level] += sums[level - 1u];
                sums[level - 1u] = T(0);
            }
        }
    }
    if (gl_LocalInvocationIndex == 0u) {
        group_total = sums[2] + (sums[1] + sums[0]);
    }
    barrier();
    T total = group_total;
    barrier();
    return total;
}
