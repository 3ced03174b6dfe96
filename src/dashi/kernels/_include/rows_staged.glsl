// Kernels over rows with a team of TEAM invocations for each row, LANES / TEAM rows at a time in a workgroup. Neighbours
// read neighbouring elements; SPAN elements at a time (a power of two, 64 to 4096) go through shared memory, where one
// invocation joins a run of 64. With KEEP an invocation holds the values of its EACH elements until the results are
// written, so that memory is read once; otherwise values are made again for every reduction, and for the results. Rows
// have at least one element. See rows.glsl.
const uint TEAMS = LANES / TEAM;
const uint RUNS = SPAN / 64u;
const uint PITCH = SPAN + RUNS;  // one more for each run, so that runs do not meet in a bank
const uint STEPS = SPAN / TEAM;
const uint CHUNKS = (EACH + STEPS - 1u) / STEPS;

shared T staged[TEAMS * PITCH];
shared ACC run_values[TEAMS * RUNS];
shared ACC team_values[TEAMS];

uint own_team() {
    return gl_LocalInvocationIndex / TEAM;
}

uint own_lane() {
    return gl_LocalInvocationIndex % TEAM;
}

T value_of(uint row, uint i) {
    return flushed(head(place_of(row, min(i, n - 1u))));
}

T value_at(uint stage, uint row, uint i, T r0) {
    T value = value_of(row, i);
    return stage == 0u ? value : flushed(moved(value, r0));
}

// The addend made of the value of element i; nothing behind the end of the row.
T addend(uint stage, T value, uint i) {
    return i < n ? element(stage, value) : none(stage);
}

void put(uint k, T value) {
    uint i = k * TEAM + own_lane();
    staged[own_team() * PITCH + i + i / RUN] = value;
}

// A staged run that begins with element i of the row, eight at a time: their loads do not wait for the sum.
ACC join_run(uint stage, uint i) {
    uint at = own_team() * PITCH + own_lane() * (RUN + 1u);
    ACC total = start(stage);
    for (uint j = 0u; j < RUN; j += 8u) {
        T values[8];
        [[unroll]] for (uint q = 0u; q < 8u; q++) {
            values[q] = staged[at + j + q];
        }
        [[unroll]] for (uint q = 0u; q < 8u; q++) {
            total = join(stage, total, take(values[q], i + j + q));
        }
    }
    return total;
}

// Joins what all have put of a chunk. All invocations of a workgroup call it together.
void join_chunk(uint stage, inout ACC sums[LEVELS], uint chunk) {
    barrier();
    if (own_lane() < RUNS) {
        run_values[own_team() * RUNS + own_lane()] = join_run(stage, chunk * SPAN + own_lane() * RUN);
    }
    barrier();
    if (own_lane() == 0u) {
        [[unroll]] for (uint run = 0u; run < RUNS; run++) {
            sums[0] = join(stage, sums[0], run_values[own_team() * RUNS + run]);
        }
        carry(stage, sums, (chunk + 1u) * RUNS);
    }
}

ACC shared_total(uint stage, ACC sums[LEVELS]) {
    if (own_lane() == 0u) {
        team_values[own_team()] = total_of(stage, sums);
    }
    barrier();
    return team_values[own_team()];
}

ACC reduce_values(uint stage, T values[EACH]) {
    ACC sums[LEVELS] = ACC[LEVELS](start(stage), start(stage), start(stage), start(stage));
    [[unroll]] for (uint chunk = 0u; chunk < CHUNKS; chunk++) {
        [[unroll]] for (uint k = 0u; k < STEPS; k++) {
            uint q = chunk * STEPS + k;
            put(k, q < EACH ? addend(stage, values[min(q, EACH - 1u)], q * TEAM + own_lane()) : none(stage));
        }
        join_chunk(stage, sums, chunk);
    }
    return shared_total(stage, sums);
}

ACC reduce_row(uint stage, uint row, T r0) {
    ACC sums[LEVELS] = ACC[LEVELS](start(stage), start(stage), start(stage), start(stage));
    for (uint chunk = 0u; chunk * SPAN < n; chunk++) {
        [[unroll]] for (uint k = 0u; k < STEPS; k++) {
            uint i = chunk * SPAN + k * TEAM + own_lane();
            put(k, addend(stage, value_at(stage, row, i, r0), i));
        }
        join_chunk(stage, sums, chunk);
    }
    return shared_total(stage, sums);
}

#ifdef PLACES
void work(uint row, bool mine) {
    ACC total = reduce_row(0u, row, T(0));
    if (mine && own_lane() == 0u) {
        store0(place_of(row, 0u), total.place);
    }
}
#else
// Up to EACH elements for each invocation: their values are made once.
void work_once(uint row, bool mine) {
    T values[EACH];
    [[unroll]] for (uint q = 0u; q < EACH; q++) {
        values[q] = value_of(row, q * TEAM + own_lane());
    }
    T r0 = flushed(settle0(flushed(reduce_values(0u, values))));
    T r1 = T(0);
    if (STAGES == 2u) {
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            values[q] = flushed(moved(values[q], r0));
        }
        r1 = flushed(settle1(flushed(reduce_values(1u, values)), r0));
    }
    if (MAPS == 0u && mine && own_lane() == 0u) {
        tail(place_of(row, 0u), T(0), r0, r1);
    }
    if (MAPS != 0u && mine) {
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            uint i = q * TEAM + own_lane();
            if (i < n) {
                tail(place_of(row, i), values[q], r0, r1);
            }
        }
    }
}

void work_again(uint row, bool mine) {
    T r0 = flushed(settle0(flushed(reduce_row(0u, row, T(0)))));
    T r1 = T(0);
    if (STAGES == 2u) {
        r1 = flushed(settle1(flushed(reduce_row(1u, row, r0)), r0));
    }
    if (MAPS == 0u && mine && own_lane() == 0u) {
        tail(place_of(row, 0u), T(0), r0, r1);
    }
    if (MAPS != 0u && mine) {
        for (uint i = own_lane(); i < n; i += TEAM) {
            tail(place_of(row, i), value_at(STAGES - 1u, row, i, r0), r0, r1);
        }
    }
}

void work(uint row, bool mine) {
    if (KEEP != 0u) {
        work_once(row, mine);
    } else {
        work_again(row, mine);
    }
}
#endif

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint block = first_block + gl_WorkGroupID.x; block < beyond; block += stride) {
        uint row = block * TEAMS + own_team();
        work(min(row, rows - 1u), row < rows);
    }
}
