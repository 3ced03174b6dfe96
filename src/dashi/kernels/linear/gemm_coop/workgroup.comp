// result (m, n) = a (m, k) b (k, n): halves multiplied by the device's matrix units, summed in fp32, by matrices that
// a whole workgroup holds together: the driver divides them among its subgroups and stages them as it likes. Defined
// before:
//     BM, BN, BK   a workgroup makes BM x BN results, over BK of k at a time; m, n and k are multiples of them
// a and b are read through tensor layouts.
#pragma use_vulkan_memory_model

const uint HALVES = 8u;  // of a uvec4
const uint GROUP = 8u;  // rows of tiles that are worked on together, so that their part of a stays in the cache

#define LEFT coopmat<float16_t, gl_ScopeWorkgroup, BM, BK, gl_MatrixUseA>
#define RIGHT coopmat<float16_t, gl_ScopeWorkgroup, BK, BN, gl_MatrixUseB>
#define SUMS coopmat<float, gl_ScopeWorkgroup, BM, BN, gl_MatrixUseAccumulator>

// Of two dimensions; what lies outside is undefined, and never read.
#define ADDRESSED extensions = ["SPV_NV_tensor_addressing"], capabilities = [5439]
#define LOADED \
    extensions = ["SPV_NV_tensor_addressing", "SPV_NV_cooperative_matrix2"], capabilities = [5433, 5439], id = 5367
#define LAYOUT spirv_type(ADDRESSED, id = 5370, 2u, 0u)
#define HALF spirv_by_reference float16_t
#define FLAGS spirv_literal uint memory, spirv_literal uint addressing

spirv_instruction(ADDRESSED, id = 5372) LAYOUT layout_new();
spirv_instruction(ADDRESSED, id = 5373) LAYOUT layout_sized(LAYOUT whole, uint rows, uint columns);
spirv_instruction(ADDRESSED, id = 5375) LAYOUT slice(LAYOUT whole, uint row, uint rows, uint column, uint columns);
spirv_instruction(LOADED) LEFT load_left(HALF start, LEFT old, LAYOUT part, FLAGS);
spirv_instruction(LOADED) RIGHT load_right(HALF start, RIGHT old, LAYOUT part, FLAGS);

void multiply_tile(uint row, uint column) {
    SUMS sums = SUMS(0.0);
    // Rows are whole vectors of 16 bytes; said so, the driver may load such.
    uint deep = k & ~(HALVES - 1u);
    uint wide = n & ~(HALVES - 1u);
    LAYOUT whole_left = layout_new();
    whole_left = layout_sized(whole_left, m, deep);
    LAYOUT whole_right = layout_new();
    whole_right = layout_sized(whole_right, deep, wide);
    [[dont_unroll]] for (uint depth = 0u; depth < k; depth += BK) {
        LEFT p = LEFT(float16_t(0));
        RIGHT q = RIGHT(float16_t(0));
        LAYOUT part_left = slice(whole_left, row, uint(BM), depth, uint(BK));
        LAYOUT part_right = slice(whole_right, depth, uint(BK), column, uint(BN));
        p = load_left(a[0], p, part_left, 0u, 0u);
        q = load_right(b[0], q, part_right, 0u, 0u);
        sums = coopMatMulAdd(p, q, sums);
    }
    coopMatStore(sums, result, row * n + column, n, gl_CooperativeMatrixLayoutRowMajor);
}

// Every invocation of a workgroup makes the same trips: matrices of the workgroup are worked on by all together.
void main() {
    for (uint tile = first_tile + gl_WorkGroupID.x; tile < tiles; tile += stride) {
        uint group = tile / (GROUP * across);
        uint place = tile % (GROUP * across);
        uint rows = min(GROUP, down - group * GROUP);
        multiply_tile((group * GROUP + place % rows) * BM, place / rows * BN);
    }
}
