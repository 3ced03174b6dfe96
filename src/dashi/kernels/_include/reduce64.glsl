// The first pass of a reduction in the canonical order tree64: n elements to one value per tile of 64 x 64, two levels
// of the tree at once. kernels/reductions.py plans the passes; the later ones are rest64.glsl. A kernel's file includes
// vectors.glsl, then this after it has defined
//     EV, EV bring(uint j)            what goes through shared memory (tile64.glsl)
//     ACC                             the type that is reduced: T, a word, or a struct
//     ACC none()                      what every run starts from, and the value of a run without elements
//     ACC take(ELEM e, uint i)        the addend made of element i, which lay in a vector of bring
//     ACC join(ACC a, ACC b)          a comes before b in the list
//     SPREAD(ACC v, constant k)       the v of the k-th invocation of each quad, in all four (for QUADS)
//     void store(uint i, ACC v)       the value of tile i
// and has the push constants n, tiles and stride (u32). With QUADS, quads of invocations work through runs
// (reduce64_quads.glsl), otherwise single invocations do (reduce64_lanes.glsl). Where order does not matter,
// stream64.glsl is faster than either.

const uint RUN = 64u;
const uint TILE = RUN * RUN;
const uint RUN_VECTORS = RUN / ELEMS;
const uint TILE_VECTORS = RUN * RUN_VECTORS;


ACC join_vector(ACC total, EV v, uint i) {
    total = join(total, take(v.x, i));
    total = join(total, take(v.y, i + 1u));
#if T_IS_F64 == 0
    total = join(total, take(v.z, i + 2u));
    total = join(total, take(v.w, i + 3u));
#endif
    return total;
}

// The same for the elements that the list still has.
ACC join_end(ACC total, EV v, uint i) {
    [[unroll]] for (uint c = 0u; c < ELEMS; c++) {
        if (i + c < n) {
            total = join(total, take(v[c], i + c));
        }
    }
    return total;
}

#ifdef QUADS
#include "reduce64_quads.glsl"
#else
#include "reduce64_lanes.glsl"
#endif
