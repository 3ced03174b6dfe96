// The first pass of a reduction in the canonical order tree64: n elements to one value per tile of 64 x 64, two levels
// of the tree at once. kernels/reductions.py plans the passes; the later ones are rest64.glsl. A kernel's file includes
// vectors.glsl, then this after it has defined
//     EV, EV bring(uint j)            what goes through shared memory (tile64.glsl)
//     ACC                             the type that is reduced: T, a word, or a struct
//     ACC none()                      what every run starts from, and the value of a run without elements
//     ACC take(ELEM e, uint i)        the addend made of element i, which lay in a vector of bring
//     ACC join(ACC a, ACC b)          a comes before b in the list
//     void store(uint i, ACC v)       the value of tile i
// and has the push constants n, tiles and stride (u32).

#include "tile64.glsl"

shared ACC run_values[RUN];

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
    for (uint c = 0u; c < ELEMS && i + c < n; c++) {
        total = join(total, take(v[c], i + c));
    }
    return total;
}

ACC join_direct(uint first) {
    ACC total = none();
    if (first + RUN <= n) {
        for (uint i = first; i < first + RUN; i += ELEMS) {
            total = join_vector(total, bring(i / ELEMS), i);
        }
    } else {
        for (uint i = first; i < n && i < first + RUN; i += ELEMS) {
            total = join_end(total, bring(i / ELEMS), i);
        }
    }
    return total;
}

ACC join_slice(ACC total, uint row, uint first, bool whole) {
    if (whole) {
        for (uint k = 0u; k < SLICE; k += 4u) {
            [[unroll]] for (uint q = k; q < k + 4u; q++) {
                total = join_vector(total, staged[row + q], first + q * ELEMS);
            }
        }
    } else {
        for (uint k = 0u; k < SLICE; k++) {
            total = join_end(total, staged[row + k], first + k * ELEMS);
        }
    }
    return total;
}

// The elements of a run, joined in order, in the invocations whose run is below RUN. All call it together.
ACC join_staged(uint tile, uint run) {
    EV mine[MINE];
    BRING_TILE(tile, mine)
    ACC total = none();
    [[unroll]] for (uint slice = 0u; slice < SLICES; slice++) {
        PUT_SLICE(slice, mine)
        barrier();
        if (run < RUN) {
            uint first = tile * TILE + run * RUN + slice * SLICE * ELEMS;
            total = join_slice(total, run * ROW, first, tile * TILE + TILE <= n);
        }
        barrier();
    }
    return total;
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    for (uint tile = gl_WorkGroupID.x; tile < tiles; tile += stride) {
        uint run = run_of(tile);
        ACC total = none();
        if (STAGED != 0u) {
            total = join_staged(tile, run);
        } else if (run < RUN) {
            total = join_direct(tile * TILE + run * RUN);
        }
        if (run < RUN) {
            run_values[run] = total;
        }
        barrier();
        if (run == 0u) {
            ACC whole = none();
            for (uint r = 0u; r < RUN; r++) {
                whole = join(whole, run_values[r]);
            }
            store(tile, whole);
        }
        barrier();
    }
}
