// What kernels over rows join, and in which order: tree64 along the row. Runs of 64 elements are joined in index order,
// then the values of 64 runs, and so on; `sums` holds what is joined at each level and not yet handed to the next. With
// PLACES the largest element is looked for, and the lowest index among equals; otherwise the functions join0, join1,
// start0 and start1 say what the one or two reductions are. Joining start() changes nothing.
const uint RUN = 64u;
const uint LEVELS = 4u;  // 64^5 elements

#ifdef PLACES
struct Best {
    KEY key;
    uint place;
};

#define ACC Best

ACC start(uint stage) {
    return Best(KEY(0), 0u);
}

// What stands for an element behind the end of the row: nothing is smaller, and its equals all come before it.
T none(uint stage) {
    return -infinity();
}

ACC take(T value, uint i) {
    return Best(order_key(value), i);
}

ACC join(uint stage, ACC a, ACC b) {
    bool better = b.key > a.key || (b.key == a.key && b.place < a.place);
    return Best(better ? b.key : a.key, better ? b.place : a.place);
}
#else
#define ACC T

T start(uint stage) {
    return stage == 0u ? start0() : start1();
}

T none(uint stage) {
    return start(stage);
}

T take(T value, uint i) {
    return value;
}

T join(uint stage, T a, T b) {
    return stage == 0u ? join0(a, b) : join1(a, b);
}
#endif

// Hands on what is whole after so many runs.
void carry(uint stage, inout ACC sums[LEVELS], uint runs) {
    [[unroll]] for (uint level = 0u; level < 3u; level++) {
        if ((runs & ((64u << (6u * level)) - 1u)) == 0u) {
            sums[level + 1u] = join(stage, sums[level + 1u], sums[level]);
            sums[level] = start(stage);
        }
    }
}

ACC total_of(uint stage, ACC sums[LEVELS]) {
    return join(stage, sums[3], join(stage, sums[2], join(stage, sums[1], sums[0])));
}

T element(uint stage, T value) {
    return flushed(stage == 0u ? first(value) : second(value));
}
