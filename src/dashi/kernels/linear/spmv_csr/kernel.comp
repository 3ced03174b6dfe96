// A workgroup takes LOCAL rows, one per invocation. Their entries lie side by side: all invocations read them together
// and leave the products in shared memory, HELD at a time; then each adds those of its row, in order.
#include "entries.glsl"

const uint BATCH = 4u;

shared T held[HELD + HELD / 32u];
shared uint low;
shared uint high;

// Where a product lies: shifted by one in 32, so that rows of a power of two do not meet in one bank.
uint place_of(uint i) {
    return i + i / 32u;
}

// Four loads of each kind at a time do not wait for each other: past the end the last entry is read again.
void bring(uint from, uint beyond) {
    for (uint i = gl_LocalInvocationIndex; i < HELD; i += BATCH * LOCAL) {
        uint at[BATCH];
        T value[BATCH];
        [[unroll]] for (uint q = 0u; q < BATCH; q++) {
            uint e = min(from + i + q * LOCAL, beyond - 1u);
            at[q] = columns[e];
            value[q] = values[e];
        }
        T factor[BATCH];
        [[unroll]] for (uint q = 0u; q < BATCH; q++) {
            factor[q] = x[at[q] < n ? at[q] : 0u];
        }
        [[unroll]] for (uint q = 0u; q < BATCH; q++) {
            held[place_of(i + q * LOCAL)] = product_of(at[q], value[q], factor[q]);
        }
    }
}

// Every invocation calls it; rows without a sum have start = beyond.
T staged_sum(uint start, uint beyond, uint from, uint last) {
    Sum s = Sum(T(0), T(0), T(0));
    for (; from < last; from += HELD) {
        bring(from, last);
        barrier();
        for (uint e = max(start, from); e < min(beyond, from + HELD); e++) {
            add(s, e - start, held[place_of(e - from)]);
        }
        barrier();
    }
    return whole(s);
}

void sum_rows(uint block) {
    uint r = block * LOCAL + gl_LocalInvocationIndex;
    uint start = 0u, beyond = 0u;
    bool good = r < rows && find_row(r, start, beyond);
    bool any = good && start < beyond;
    if (gl_LocalInvocationIndex == 0u) {
        low = 0xffffffffu;
        high = 0u;
    }
    barrier();
    if (any) {
        atomicMin(low, start);
        atomicMax(high, beyond);
    }
    barrier();
    uint from = low;
    uint last = high;
    T total = T(0);
    // Offsets that go up and down may span the whole list; then each invocation finds its own entries.
    bool narrow = from >= last || last - from <= LOCAL * longest;
    if (narrow) {
        total = staged_sum(any ? start : 0u, any ? beyond : 0u, from, last);
    } else if (any) {
        total = direct_sum(start, beyond);
    }
    if (r < rows) {
        result[r] = good ? total : not_a_number();
    }
    barrier();
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint block = first_block + gl_WorkGroupID.x; block < blocks; block += stride) {
        sum_rows(block);
    }
}
