// result (m, n) = a (m, k) b (k, n): halves multiplied by the device's matrix units, summed in fp32. Define before:
//     BM, BN, BK   a workgroup makes BM x BN results, over BK of k, which is 32, at a time
//     PM, PN       its subgroups make PM x PN patches of BM / PM rows by BN / PN columns; 32 invocations for each
//     FULL         1: m, n and k are multiples of BM, BN and BK, nothing is guarded, and results go to memory through
//                  shared memory, by whole rows of 128 bytes
//     EARLY        1: fragments are loaded before those before them are multiplied; needs FULL
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

// Results of a subgroup on their way to memory: 16 rows of 32.
const uint STRIP_WIDE = 8u;
const uint STRIP_PITCH = STRIP_WIDE + 2u;
const uint STRIP = SIDE * STRIP_PITCH;

shared uvec4 left[BM * A_PITCH];
shared uvec4 right[max(BK * B_PITCH, FULL * PATCHES * STRIP)];

struct Brought {
    uvec4 of_a[A_BROUGHT];
    uvec4 of_b[B_BROUGHT];
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

// The row of a for an invocation: of each eight, those next to each other are not written to the same banks at once.
uint a_row() {
    uint row = gl_LocalInvocationIndex / A_WIDE;
    return (row & ~7u) | (row & 1u) << 2 | (row >> 1 & 3u);
}

// Where the first vectors of an invocation lie in the tile's rows of a and in its columns of b.
uvec2 sources(uint row, uint column) {
    uint me = gl_LocalInvocationIndex;
    uint left_at = (row + a_row()) * (k / HALVES) + me % A_WIDE;
    return uvec2(left_at, me / B_WIDE * (n / HALVES) + column / HALVES + me % B_WIDE);
}

// The next part of k. After the last part comes the last again, which nobody multiplies.
#define FETCH(v, from, depth) \
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) { \
        v.of_a[q] = a[from.x + min(depth, k - BK) / HALVES + q * (LOCAL / A_WIDE) * (k / HALVES)]; \
    } \
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) { \
        v.of_b[q] = b[from.y + (min(depth, k - BK) + q * (LOCAL / B_WIDE)) * (n / HALVES)]; \
    }
#define PUT(v) \
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) { \
        left[left_to + q * (LOCAL / A_WIDE) * A_PITCH] = v.of_a[q]; \
    } \
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) { \
        right[right_to + q * (LOCAL / B_WIDE) * B_PITCH] = v.of_b[q]; \
    }
#else
// Loads are never skipped, so that they do not wait for each other: where the matrix has ended, its edge is read.
Brought fetch(uint row, uint column, uint depth) {
    uint me = gl_LocalInvocationIndex;
    Brought v;
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) {
        uint i = q * LOCAL + me;
        uint d = depth + i % A_WIDE * HALVES;
        v.of_a[q] = a_at(min(row + i / A_WIDE, m - 1u), d < k ? d : 0u);
    }
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) {
        uint i = q * LOCAL + me;
        uint c = min(column / HALVES + i % B_WIDE, n / HALVES - 1u);
        v.of_b[q] = b[min(depth + i / B_WIDE, k - 1u) * (n / HALVES) + c];
    }
    return v;
}

void put(Brought v, uint depth) {
    uint me = gl_LocalInvocationIndex;
    [[unroll]] for (uint q = 0u; q < A_BROUGHT; q++) {
        uint i = q * LOCAL + me;
        bool inside = depth + i % A_WIDE * HALVES < k;
        left[i / A_WIDE * A_PITCH + i % A_WIDE] = inside ? v.of_a[q] : uvec4(0u);
    }
    [[unroll]] for (uint q = 0u; q < B_BROUGHT; q++) {
        uint i = q * LOCAL + me;
        bool inside = depth + i / B_WIDE < k;
        right[i / B_WIDE * B_PITCH + i % B_WIDE] = inside ? v.of_b[q] : uvec4(0u);
    }
}
#endif

#define LEFT coopmat<float16_t, gl_ScopeSubgroup, SIDE, SIDE, gl_MatrixUseA>
#define RIGHT coopmat<float16_t, gl_ScopeSubgroup, SIDE, SIDE, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, SIDE, SIDE, gl_MatrixUseAccumulator>

// Not functions: matrices that are handed over might be copied.
#define LOAD_LEFT(p, d) \
    [[unroll]] for (uint i = 0u; i < FM; i++) { \
        uint at = r * A_PITCH + (i * SIDE * A_PITCH + (d) / HALVES); \
        coopMatLoad(p[i], left, at, A_PITCH, gl_CooperativeMatrixLayoutRowMajor); \
    }
#define LOAD_RIGHT(q, j, d) \
    uint at = c / HALVES + ((d) * B_PITCH + (j) * SIDE / HALVES); \
    coopMatLoad(q, right, at, B_PITCH, gl_CooperativeMatrixLayoutRowMajor);
#define LOAD(p, q, d) \
    LOAD_LEFT(p, d) \
    [[unroll]] for (uint j = 0u; j < FN; j++) { \
        LOAD_RIGHT(q[j], j, d) \
    }
#define MULTIPLY(p, q, begin, end) \
    [[unroll]] for (uint j = begin; j < end; j++) { \
        [[unroll]] for (uint i = 0u; i < FM; i++) { \
            sums[i][j] = coopMatMulAdd(p[i], q[j], sums[i][j]); \
        } \
    }
// All products of a buffer; fragments are loaded when they are needed.
#define MULTIPLY_IN_TURN \
    [[unroll]] for (uint d = 0u; d < BK; d += SIDE) { \
        LEFT p[FM]; \
        LOAD_LEFT(p, d) \
        [[unroll]] for (uint j = 0u; j < FN; j++) { \
            RIGHT q; \
            LOAD_RIGHT(q, j, d) \
            [[unroll]] for (uint i = 0u; i < FM; i++) { \
                sums[i][j] = coopMatMulAdd(p[i], q, sums[i][j]); \
            } \
        } \
    }

// Rows of tiles that are worked on together, so that their part of a stays in the cache.
const uint GROUP = 8u;

// The first row and column of a tile.
uvec2 place_of(uint tile) {
    uint group = tile / (GROUP * across);
    uint place = tile % (GROUP * across);
    uint rows = min(GROUP, down - group * GROUP);
    return uvec2((group * GROUP + place % rows) * BM, place / rows * BN);
}

#if FULL
// One vector of a strip to its place.
void hand_over(uint e, uint strip, uint corner) {
    uint y = e / STRIP_WIDE;
    uint x = e % STRIP_WIDE;
    result[corner + y * (n / 4u) + x] = right[strip + y * STRIP_PITCH + x];
}

// A strip to memory, by the subgroup that made it. Where its size is known, nothing waits for the loop.
void hand_over_strip(uint strip, uint corner) {
    subgroupBarrier();
    if (gl_SubgroupSize == 32u) {
        [[unroll]] for (uint e = 0u; e < SIDE * STRIP_WIDE; e += 32u) {
            hand_over(e + gl_SubgroupInvocationID, strip, corner);
        }
    } else {
        for (uint e = gl_SubgroupInvocationID; e < SIDE * STRIP_WIDE; e += gl_SubgroupSize) {
            hand_over(e, strip, corner);
        }
    }
    subgroupBarrier();
}

#define WRITE_RESULTS \
    if (piece < PATCHES) { \
        uint strip = piece * STRIP; \
        uint to = (tile.x + r) * (n / 4u) + (tile.y + c) / 4u; \
        [[unroll]] for (uint i = 0u; i < FM; i++) { \
            [[unroll]] for (uint j = 0u; j < FN; j += 2u) { \
                coopMatStore(sums[i][j], right, strip, STRIP_PITCH, gl_CooperativeMatrixLayoutRowMajor); \
                coopMatStore(sums[i][j + 1u], right, strip + 4u, STRIP_PITCH, gl_CooperativeMatrixLayoutRowMajor); \
                hand_over_strip(strip, to + i * SIDE * (n / 4u) + j * SIDE / 4u); \
            } \
        } \
    } \
    barrier();  // before the buffers are filled again
#else
#define WRITE_RESULTS \
    [[unroll]] for (uint i = 0u; i < FM; i++) { \
        [[unroll]] for (uint j = 0u; j < FN; j++) { \
            uint y = tile.x + r + i * SIDE; \
            uint x = tile.y + c + j * SIDE; \
            if (piece < PATCHES && y < m && x < n) { \
                coopMatStore(sums[i][j], result, y * n + x, n, gl_CooperativeMatrixLayoutRowMajor); \
            } \
        } \
    }
#endif

// A subgroup makes one patch. All subgroups of the workgroup call it together; those with a number too many make some
// patch again and write nothing.
void multiply_tile(uvec2 tile, uint piece) {
    uint r = piece % PATCHES / PN * FM * SIDE;
    uint c = piece % PN * FN * SIDE;
    Brought ahead;
    SUM sums[FM][FN];
    [[unroll]] for (uint i = 0u; i < FM; i++) {
        [[unroll]] for (uint j = 0u; j < FN; j++) {
            sums[i][j] = SUM(0.0);
        }
    }
#if FULL
    uint left_to = a_row() * A_PITCH + gl_LocalInvocationIndex % A_WIDE;
    uint right_to = gl_LocalInvocationIndex / B_WIDE * B_PITCH + gl_LocalInvocationIndex % B_WIDE;
    uvec2 from = sources(tile.x, tile.y);
    FETCH(ahead, from, 0u)
#endif
#if EARLY
    LEFT p_even[FM];
    LEFT p_odd[FM];
    RIGHT q_even[FN];
    RIGHT q_odd[FN];
    PUT(ahead)
    FETCH(ahead, from, BK)
    barrier();
    LOAD(p_even, q_even, 0u)
    [[dont_unroll]] for (uint depth = 0u; depth < k; depth += BK) {
        LOAD(p_odd, q_odd, SIDE)
        MULTIPLY(p_even, q_even, 0u, FN)
        barrier();  // the buffers have been loaded wholly, and may be filled
        PUT(ahead)
        FETCH(ahead, from, depth + 2u * BK)
        MULTIPLY(p_odd, q_odd, 0u, FN / 2u)
        barrier();
        LOAD(p_even, q_even, 0u)
        MULTIPLY(p_odd, q_odd, FN / 2u, FN)
    }
    barrier();
#elif FULL
    [[dont_unroll]] for (uint depth = 0u; depth < k; depth += BK) {
        PUT(ahead)
        barrier();
        FETCH(ahead, from, depth + BK)  // on its way while the products are made
        MULTIPLY_IN_TURN
        barrier();
    }
#else
    if (k > 0u) {
        ahead = fetch(tile.x, tile.y, 0u);
    }
    [[dont_unroll]] for (uint depth = 0u; depth < k; depth += BK) {
        put(ahead, depth);
        barrier();
        ahead = fetch(tile.x, tile.y, depth + BK);  // on its way while the products are made
        MULTIPLY_IN_TURN
        barrier();
    }
#endif
    WRITE_RESULTS
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier. Devices whose subgroups are
// wider than 32 have fewer of them, which take turns.
void main() {
    for (uint tile = first_tile + gl_WorkGroupID.x; tile < tiles; tile += stride) {
        uvec2 here = place_of(tile);
        for (uint turn = 0u; turn < PATCHES; turn += gl_NumSubgroups) {
            multiply_tile(here, turn + gl_SubgroupID);
        }
    }
}
