// Kernels over rows with SLOTS invocations for each row, of which each joins whole runs of 64 elements by itself: for
// rows whose elements lie apart, so that neighbours work on neighbouring rows, and for devices whose caches do the work
// of shared memory. COLUMNS x SLOTS are LANES, the workgroup; SLOTS is a power of two up to 64. Values of elements are
// made again for every reduction, and for the results. See rows.glsl.
shared ACC run_values[LANES];

uint own_column() {
    return gl_LocalInvocationIndex % COLUMNS;
}

uint own_slot() {
    return gl_LocalInvocationIndex / COLUMNS;
}

T value_of(uint stage, uint row, uint i, T r0) {
    T value = flushed(head(place_of(row, i)));
    return stage == 0u ? value : flushed(moved(value, r0));
}

ACC join_run(uint stage, uint row, uint run, T r0) {
    ACC total = start(stage);
    for (uint i = run * RUN; i < min(n, run * RUN + RUN); i++) {
        total = join(stage, total, take(element(stage, value_of(stage, row, i, r0)), i));
    }
    return total;
}

// All invocations of a workgroup call it together: each makes the same trips round the outer loop.
ACC reduce_row(uint stage, uint row, T r0) {
    ACC sums[LEVELS] = ACC[LEVELS](start(stage), start(stage), start(stage), start(stage));
    for (uint run = 0u; run * RUN < n; run += SLOTS) {
        ACC own = join_run(stage, row, run + own_slot(), r0);
        if (SLOTS == 1u) {
            sums[0] = join(stage, sums[0], own);
        } else {
            barrier();
            run_values[gl_LocalInvocationIndex] = own;
            barrier();
            for (uint slot = 0u; slot < SLOTS; slot++) {
                sums[0] = join(stage, sums[0], run_values[slot * COLUMNS + own_column()]);
            }
        }
        carry(stage, sums, run + SLOTS);
    }
    return total_of(stage, sums);
}

#ifndef PLACES
void write_row(uint row, T r0, T r1) {
    if (MAPS == 0u) {
        if (own_slot() == 0u) {
            tail(place_of(row, 0u), T(0), r0, r1);
        }
        return;
    }
    for (uint run = own_slot(); run * RUN < n; run += SLOTS) {
        for (uint i = run * RUN; i < min(n, run * RUN + RUN); i++) {
            tail(place_of(row, i), value_of(STAGES - 1u, row, i, r0), r0, r1);
        }
    }
}
#endif

void main() {
    for (uint block = first_block + gl_WorkGroupID.x; block < beyond; block += stride) {
        uint row = min(block * COLUMNS + own_column(), rows - 1u);
        bool mine = block * COLUMNS + own_column() < rows;
        ACC total = reduce_row(0u, row, T(0));
#ifdef PLACES
        if (mine && own_slot() == 0u) {
            store0(place_of(row, 0u), total.place);
        }
#else
        T r0 = flushed(settle0(flushed(total)));
        T r1 = T(0);
        if (STAGES == 2u) {
            r1 = flushed(settle1(flushed(reduce_row(1u, row, r0)), r0));
        }
        if (mine) {
            write_row(row, r0, r1);
        }
#endif
    }
}
