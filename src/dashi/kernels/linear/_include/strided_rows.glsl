// Rows of a along k, and rows of b along columns, with strides between them and batch axes: what gemm_small.glsl and
// gemm_few.glsl read and write.
#include "strided_batch.glsl"

#define A_ROW(r) a_from + r * a_row
#define B_STEP_OF_K b_depth

void store_lanes(uint row, uint column, V v) {
#if V_LANES == 1
    store_one(row, column, v);
#elif V_LANES == 4
    store_four(row, column, finish_four(row, column, v));
#else
    [[unroll]] for (uint e = 0u; e < V_LANES; e++) {
        store_one(row, column + e, v[e]);
    }
#endif
}
