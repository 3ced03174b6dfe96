// Lists that lie side by side, so that invocations which take neighbouring lists read neighbouring memory: those of 32
// outputs share a slab, entry p of list k lies at slab[k / 32] + 32 p + k % 32. `heads` holds the length of every list,
// then the place of every slab. kernels/slabs.py makes them.
const uint SLAB = 32u;

uint slab_base;  // where the first entry of the present list lies

uint slab_place(uint e) {
    return slab_base + e * SLAB;
}

// A list that is longer than declared, or that leaves the entries, has no sum: a part is never taken for the whole.
bool slab_is_whole(uint length, uint slots, uint longest) {
    return length == 0u || (length <= longest && slab_base < slots && length - 1u <= (slots - 1u - slab_base) / SLAB);
}
