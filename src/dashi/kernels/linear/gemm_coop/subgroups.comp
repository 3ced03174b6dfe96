// result (m, n) = a (m, k) b (k, n): halves multiplied by the device's matrix units, summed in fp32. Define before:
//     BM, BN, BK   a workgroup makes BM x BN results, over BK of k at a time
//     PM, PN       its subgroups make PM x PN patches of BM / PM rows by BN / PN columns; 32 invocations for each
//     SLOTS        1: one buffer is filled and multiplied in turns. 2: one is filled while the other is multiplied
//     FULL         1: m, n and k are multiples of BM, BN and SLOTS BK, and nothing is guarded
//     EARLY        1: fragments are loaded while those before them are multiplied; needs FULL, and BK to be 32 with one
//                  buffer, 16 or 32 with two, which need EARLY
// b, and a unless it is read by halves, come in vectors of 8 halves. m and n are multiples of 16. Past the end of k
// both are zero.
#pragma use_vulkan_memory_model

const uint SIDE = 16u;
const uint HALVES = 8u;  // of a uvec4
const uint PATCHES = PM * PN;
const uint LOCAL = 32u * PATCHES;
const uint FM = BM / PM / SIDE;  // fragments of a patch
const uint FN = BN / PN / SIDE;
const uint A_WIDE = BK / HALVES;
const uint B_WIDE = BN / HALVES;
const uint A_PITCH = A_WIDE + 1u;  // one more, so that rows do not meet in one bank
const uint B_PITCH = B_WIDE + 1u;
const uint A_BROUGHT = BM * A_WIDE / LOCAL;
const uint B_BROUGHT = BK * B_WIDE / LOCAL;
const uint GROUP = 8u;  // rows of tiles that are worked on together, so that their part of a stays in the cache

const uint A_SLOT = BM * A_PITCH;
const uint B_SLOT = BK * B_PITCH;

shared uvec4 left[SLOTS * A_SLOT];
shared uvec4 right[SLOTS * B_SLOT];

struct Brought {
    uvec4 left[A_BROUGHT];
    uvec4 right[B_BROUGHT];
};

#ifdef V
uvec4 a_at(uint row, uint depth) {
    return a[row * (k / HALVES) + depth / HALVES];
}
#else
uint half_pair(uint at, uint depth) {
    float16_t low = a[at + min(depth, k - 1u)];
    float16_t high = a[at + min(depth + 1u, k - 1u)];
    return packFloat2x16(f16vec2(low, depth + 1u < k ? high : float16_t(0)));
}

uvec4 a_at(uint row, uint depth) {
    uint at = row * k;
    uvec4 v = uvec4(half_pair(at, depth), 0u, 0u, 0u);
    v.y = depth + 2u < k ? half_pair(at, depth + 2u) : 0u;
    v.z = depth + 4u < k ? half_pair(at, depth + 4u) : 0u;
    v.w = depth + 6u < k ? half_pair(at, depth + 6u) : 0u;
    return v;
}
#endif

#if FULL
// An invocation reads and writes columns of vectors, some rows apart: only its first place is worked out.
Brought fetch(uint row, uint column, uint depth) {
    uint me = gl_LocalInvocationIndex;
    uint from = min(depth, k - BK);  // after the last come the last again, which nobody multiplies
    uint a_from = (row + me / A_WIDE) * (k / HALVES) + me % A_WIDE + from / HALVES;
    uint b_from = me / B_WIDE * (n / HALVES) + column / HALVES + me % B_WIDE + from * (n / HALVES);
    Brought v;
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) {
        v.left[q] = a[a_from + q * (LOCAL / A_WIDE) * (k / HALVES)];
    }
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) {
        v.right[q] = b[b_from + q * (LOCAL / B_WIDE) * (n / HALVES)];
    }
    return v;
}

void put(Brought v, uint depth, uint slot) {
    uint me = gl_LocalInvocationIndex;
    uint a_to = me / A_WIDE * A_PITCH + me % A_WIDE;
    uint b_to = me / B_WIDE * B_PITCH + me % B_WIDE;
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) {
        left[a_to + (slot * A_SLOT + q * (LOCAL / A_WIDE) * A_PITCH)] = v.left[q];
    }
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) {
        right[b_to + (slot * B_SLOT + q * (LOCAL / B_WIDE) * B_PITCH)] = v.right[q];
    }
}
#else
// Loads are never skipped, so that they do not wait for each other: where the matrix has ended, its edge is read.
Brought fetch(uint row, uint column, uint depth) {
    uint me = gl_LocalInvocationIndex;
    Brought v;
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) {
        uint i = q * LOCAL + me;
        uint d = depth + i % A_WIDE * HALVES;
        v.left[q] = a_at(min(row + i / A_WIDE, m - 1u), d < k ? d : 0u);
    }
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) {
        uint i = q * LOCAL + me;
        uint c = min(column / HALVES + i % B_WIDE, n / HALVES - 1u);
        v.right[q] = b[min(depth + i / B_WIDE, k - 1u) * (n / HALVES) + c];
    }
    return v;
}

void put(Brought v, uint depth, uint slot) {
    uint me = gl_LocalInvocationIndex;
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) {
        uint i = q * LOCAL + me;
        bool inside = depth + i % A_WIDE * HALVES < k;
        left[slot * A_SLOT + i / A_WIDE * A_PITCH + i % A_WIDE] = inside ? v.left[q] : uvec4(0u);
    }
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) {
        uint i = q * LOCAL + me;
        bool inside = depth + i / B_WIDE < k;
        right[slot * B_SLOT + i / B_WIDE * B_PITCH + i % B_WIDE] = inside ? v.right[q] : uvec4(0u);
    }
}
#endif

#define LEFT coopmat<float16_t, gl_ScopeSubgroup, SIDE, SIDE, gl_MatrixUseA>
#define RIGHT coopmat<float16_t, gl_ScopeSubgroup, SIDE, SIDE, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, SIDE, SIDE, gl_MatrixUseAccumulator>

// Not functions: matrices that are handed over might be copied.
#define LOAD_LEFT(p, slot, d) \
    [[unroll]] for (uint i = 0u; i < FM; i++) { \
        uint at = r * A_PITCH + ((slot) * A_SLOT + i * SIDE * A_PITCH + (d) / HALVES); \
        coopMatLoad(p[i], left, at, A_PITCH, gl_CooperativeMatrixLayoutRowMajor); \
    }
#define LOAD_RIGHT(q, j, slot, d) \
    uint at = c / HALVES + ((slot) * B_SLOT + (d) * B_PITCH + (j) * SIDE / HALVES); \
    coopMatLoad(q, right, at, B_PITCH, gl_CooperativeMatrixLayoutRowMajor);
#define LOAD(p, q, slot, d) \
    LOAD_LEFT(p, slot, d) \
    [[unroll]] for (uint j = 0u; j < FN; j++) { \
        LOAD_RIGHT(q[j], j, slot, d) \
    }
#define MULTIPLY(p, q, begin, end) \
    [[unroll]] for (uint j = begin; j < end; j++) { \
        [[unroll]] for (uint i = 0u; i < FM; i++) { \
            sums[i][j] = coopMatMulAdd(p[i], q[j], sums[i][j]); \
        } \
    }

// A subgroup makes one patch. All subgroups of the workgroup call it together; those with a number too many make some
// patch again and write nothing.
void multiply_tile(uint row, uint column, uint piece) {
    uint r = piece % PATCHES / PN * FM * SIDE;
    uint c = piece % PN * FN * SIDE;
    SUM sums[FM][FN];
    [[unroll]] for (uint i = 0u; i < FM; i++) {
        [[unroll]] for (uint j = 0u; j < FN; j++) {
            sums[i][j] = SUM(0.0);
        }
    }
#if SLOTS == 2
    LEFT p_even[FM];
    LEFT p_odd[FM];
    RIGHT q_even[FN];
    RIGHT q_odd[FN];
    Brought ahead = fetch(row, column, 0u);
    put(ahead, 0u, 0u);
    ahead = fetch(row, column, BK);
    put(ahead, 0u, 1u);
    ahead = fetch(row, column, 2u * BK);
#if BK == 16
    Brought later = fetch(row, column, 3u * BK);
#endif
    barrier();
    LOAD(p_even, q_even, 0u, 0u)
    [[dont_unroll]] for (uint depth = 0u; depth < k; depth += 2u * BK) {
        // After a barrier one buffer has been loaded wholly, and may be filled, and the other filled, and may be loaded.
#if BK == 16
        barrier();
        LOAD(p_odd, q_odd, 1u, 0u)
        put(ahead, 0u, 0u);
        ahead = fetch(row, column, depth + 4u * BK);
        MULTIPLY(p_even, q_even, 0u, FN)
        barrier();
        LOAD(p_even, q_even, 0u, 0u)
        put(later, 0u, 1u);
        later = fetch(row, column, depth + 5u * BK);
        MULTIPLY(p_odd, q_odd, 0u, FN)
#else
        LOAD(p_odd, q_odd, 0u, SIDE)
        MULTIPLY(p_even, q_even, 0u, FN)
        barrier();
        LOAD(p_even, q_even, 1u, 0u)
        put(ahead, 0u, 0u);
        ahead = fetch(row, column, depth + 3u * BK);
        MULTIPLY(p_odd, q_odd, 0u, FN)
        LOAD(p_odd, q_odd, 1u, SIDE)
        MULTIPLY(p_even, q_even, 0u, FN)
        barrier();
        LOAD(p_even, q_even, 0u, 0u)
        put(ahead, 0u, 1u);
        ahead = fetch(row, column, depth + 4u * BK);
        MULTIPLY(p_odd, q_odd, 0u, FN)
#endif
    }
    barrier();
#elif EARLY
    LEFT p_even[FM];
    LEFT p_odd[FM];
    RIGHT q_even[FN];
    RIGHT q_odd[FN];
    Brought ahead = fetch(row, column, 0u);
    put(ahead, 0u, 0u);
    ahead = fetch(row, column, BK);
    barrier();
    LOAD(p_even, q_even, 0u, 0u)
    [[dont_unroll]] for (uint depth = 0u; depth < k; depth += BK) {
        LOAD(p_odd, q_odd, 0u, SIDE)
        MULTIPLY(p_even, q_even, 0u, FN)
        barrier();  // the buffer has been loaded wholly, and may be filled
        put(ahead, 0u, 0u);
        ahead = fetch(row, column, depth + 2u * BK);
        MULTIPLY(p_odd, q_odd, 0u, FN / 2u)
        barrier();
        LOAD(p_even, q_even, 0u, 0u)
        MULTIPLY(p_odd, q_odd, FN / 2u, FN)
    }
    barrier();
#else
    Brought ahead;
    if (k > 0u) {
        ahead = fetch(row, column, 0u);
    }
    [[dont_unroll]] for (uint depth = 0u; depth < k; depth += BK) {
        put(ahead, depth, 0u);
        barrier();
        ahead = fetch(row, column, depth + BK);  // on its way while the products are made
        [[unroll]] for (uint d = 0u; d < BK; d += SIDE) {
            LEFT p[FM];
            LOAD_LEFT(p, 0u, d)
            [[unroll]] for (uint j = 0u; j < FN; j++) {
                RIGHT q;
                LOAD_RIGHT(q, j, 0u, d)
                [[unroll]] for (uint i = 0u; i < FM; i++) {
                    sums[i][j] = coopMatMulAdd(p[i], q, sums[i][j]);
                }
            }
        }
        barrier();
    }
#endif
    [[unroll]] for (uint i = 0u; i < FM; i++) {
        [[unroll]] for (uint j = 0u; j < FN; j++) {
            uint y = row + r + i * SIDE;
            uint x = column + c + j * SIDE;
            if (piece < PATCHES && (FULL == 1 || y < m && x < n)) {
                coopMatStore(sums[i][j], result, y * n + x, n, gl_CooperativeMatrixLayoutRowMajor);
            }
        }
    }
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier. Devices whose subgroups are
// wider than 32 have fewer of them, which take turns.
void main() {
    for (uint tile = first_tile + gl_WorkGroupID.x; tile < tiles; tile += stride) {
        uint group = tile / (GROUP * across);
        uint place = tile % (GROUP * across);
        uint rows = min(GROUP, down - group * GROUP);
        uint row = (group * GROUP + place % rows) * BM;
        uint column = place / rows * BN;
        for (uint turn = 0u; turn < PATCHES; turn += gl_NumSubgroups) {
            multiply_tile(row, column, turn + gl_SubgroupID);
        }
    }
}
